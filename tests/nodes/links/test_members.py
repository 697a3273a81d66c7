"""Test which member does a task that only one may do at a time."""

from brokerapp.nodes.links.members import NodeMember, NodeMembers


def test_the_eldest_is_who_joined_first_whatever_its_name():
    members = [NodeMember("a", "1", joined=7), NodeMember("b", "2", joined=3), NodeMember("c", "3", joined=5)]
    assert NodeMembers(7, members, "1").eldest == "2"
    assert NodeMembers(8, [members[0], members[2]], "1").eldest == "3"


def test_a_member_of_a_version_that_does_not_say_when_it_joined_is_older():
    older = NodeMember.from_record("z", {"session": "9"})
    newer = NodeMember.from_record("a", {"session": "1", "joined": 1})
    assert NodeMembers(1, [newer, older], "1").eldest == "9"
