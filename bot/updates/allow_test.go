package updates

import (
	"testing"

	"ductor/orchestrator"
)

func TestAllow(t *testing.T) {
	ann, bob := &wireUser{ID: 7}, &wireUser{ID: 8}
	private := func(id int64) wireChat { return wireChat{ID: id, Type: "private"} }
	team := wireChat{ID: -1, Type: "supergroup"}
	roster := orchestrator.Roster{7: orchestrator.RoleUser}
	listed := Allow{Users: roster, Policy: always(Policy{AllowedGroups: []int64{-1}})}
	all := Allow{Users: roster, Policy: always(Policy{AllowedGroups: []int64{-1}, GroupMembers: AllMembers})}
	groupOnly := Allow{Policy: always(Policy{AllowedGroups: []int64{-1}})}

	tests := []struct {
		name  string
		allow Allow
		chat  wireChat
		from  *wireUser
		as    *wireChat
		want  bool
	}{
		{"empty lists are nobody", Allow{}, private(7), ann, nil, false},
		{"empty lists are nobody, also with all members", Allow{Policy: always(Policy{GroupMembers: AllMembers})}, team, ann, nil, false},
		{"listed in private", listed, private(7), ann, nil, true},
		{"stranger in private", listed, private(8), bob, nil, false},
		{"stranger in private, all members of groups", all, private(8), bob, nil, false},
		{"listed in an allowed group", listed, team, ann, nil, true},
		{"member of an allowed group who is not listed", listed, team, bob, nil, false},
		{"the same with all members", all, team, bob, nil, true},
		{"listed in a group that is not", listed, wireChat{ID: -2, Type: "group"}, ann, nil, false},
		{"group without listed people", groupOnly, team, ann, nil, false},
		{"basic group", all, wireChat{ID: -1, Type: "group"}, bob, nil, true},
		{"a user id in the list of groups", Allow{Policy: always(Policy{AllowedGroups: []int64{8}})}, private(8), bob, nil, false},
		{"a group id in the list of users", Allow{Users: orchestrator.Roster{-1: orchestrator.RoleUser}, Policy: always(Policy{})}, team, bob, nil, false},
		{"anonymous admin", all, team, &wireUser{ID: 1087968824, IsBot: true}, &team, false},
		{"in the name of a channel", all, team, ann, &wireChat{ID: -9, Type: "channel"}, false},
		{"channel post", all, wireChat{ID: -1, Type: "channel"}, nil, nil, false},
		{"channel post with an author", all, wireChat{ID: -1, Type: "channel"}, ann, nil, false},
		{"another bot", Allow{Users: orchestrator.Roster{9: orchestrator.RoleUser}}, private(9), &wireUser{ID: 9, IsBot: true}, nil, false},
		{"nobody", all, team, nil, nil, false},
		{"a chat of a new kind", all, wireChat{ID: -1, Type: "forum2"}, ann, nil, false},
		{"spelled otherwise than all", Allow{Policy: always(Policy{AllowedGroups: []int64{-1}, GroupMembers: "everybody"})}, team, bob, nil, false},
	}
	for _, tt := range tests {
		if got := tt.allow.permits(tt.chat, tt.from, tt.as); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func always(p Policy) func() Policy { return func() Policy { return p } }
