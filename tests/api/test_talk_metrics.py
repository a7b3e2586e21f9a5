"""What the page of numbers says of conversations."""

from paceline.api.metrics import PrometheusObserver
from paceline.core.instants import SECOND


def test_conversations_are_on_the_page() -> None:
    observer = PrometheusObserver()
    talk = observer.talk
    talk.answered("support", "answered", 9 * SECOND)
    talk.answered("support", "answered", 70 * SECOND)
    talk.answered("support", "handed")
    talk.acquired, talk.already_held, talk.stale_cleaned = 4, 2, 1
    talk.stands({"thinking": 3, "replying": 1}, {"auto": 5, "human": 2}, {"auto": 12.5})
    lines = observer.page().decode().splitlines()
    for line in (
        'paceline_answers_total{outcome="answered",way="support"} 2.0',
        'paceline_answers_total{outcome="handed",way="support"} 1.0',
        'paceline_answer_seconds_bucket{le="10.0"} 1.0',
        'paceline_answer_seconds_bucket{le="+Inf"} 2.0',
        "paceline_answer_seconds_count 2.0",
        "paceline_answer_seconds_sum 79.0",
        'paceline_turns_active{state="thinking"} 3.0',
        'paceline_turns_active{state="replying"} 1.0',
        'paceline_conversations_waiting{for="responder"} 5.0',
        'paceline_conversations_waiting{for="person"} 2.0',
        'paceline_oldest_waiting_seconds{for="responder"} 12.5',
        'paceline_oldest_waiting_seconds{for="person"} 0.0',
        "paceline_turns_acquired_total 4.0",
        "paceline_turns_already_held_total 2.0",
        "paceline_turns_stale_cleaned_total 1.0",
    ):
        assert line in lines
