package sessions_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/sessions"
)

const (
	ann, bob     = 7, 8 // listed users
	team, secret = -5, -6
)

// library is a store with a session of each chat: of Ann in private, in the team and in another group, in projects that
// are shared and in others.
type library struct {
	*sessions.Book
	db     *store.DB
	roster orchestrator.Roster
	groups []int64
}

func newLibrary(t *testing.T) *library {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ductor.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	l := &library{db: db, roster: orchestrator.Roster{ann: orchestrator.RoleOwner, bob: orchestrator.RoleUser},
		groups: []int64{team, secret}}
	l.Book = sessions.New(sessions.Options{Store: db, Now: time.Now, Access: sessions.Access{
		RoleOf: func(user orchestrator.PersonID) orchestrator.UserRole { return l.roster.RoleOf(user) },
		Groups: func() []int64 { return l.groups },
		Shared: func() (dirs, except []string) { return []string{"/shop"}, []string{"/shop/safe"} },
	}})
	for id, s := range map[string]orchestrator.Session{
		"ann":          {Conversation: orchestrator.ConversationID{Chat: ann}, Dir: "/home", Person: ann},
		"ann-shop":     {Conversation: orchestrator.ConversationID{Chat: ann}, Dir: "/shop/web", Person: ann},
		"ann-shopping": {Conversation: orchestrator.ConversationID{Chat: ann}, Dir: "/shopping", Person: ann},
		"ann-safe":     {Conversation: orchestrator.ConversationID{Chat: ann}, Dir: "/shop/safe", Person: ann},
		"bob":          {Conversation: orchestrator.ConversationID{Chat: bob}, Dir: "/shop", Person: bob},
		"team":         {Conversation: orchestrator.ConversationID{Chat: team}, Dir: "/home", Person: ann},
		"topic":        {Conversation: orchestrator.ConversationID{Chat: team, Topic: 3}, Dir: "/home", Person: ann},
		"secret":       {Conversation: orchestrator.ConversationID{Chat: secret}, Dir: "/home", Person: ann},
	} {
		s.ID, s.Created, s.Title = orchestrator.SessionID(id), time.Unix(1, 0), id
		if err := db.CreateSession(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for _, user := range []orchestrator.PersonID{ann, bob} {
			if user == s.Person || user == bob && s.Conversation.Chat == team {
				id := cli.TurnID(id + string(rune('0'+user)))
				prompt := orchestrator.Prompt{Conversation: s.Conversation, Person: user, Text: "words"}
				turn := orchestrator.Turn{ID: id, Session: s.ID, Prompt: prompt}
				if err := db.EnqueueTurn(t.Context(), turn); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return l
}

// readable lists the sessions that a turn can read, one by one and in a list.
func (l *library) readable(t *testing.T, turn orchestrator.Turn) string {
	t.Helper()
	scope, err := l.Scope(t.Context(), turn)
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := l.FindSessions(t.Context(), orchestrator.SessionQuery{Scope: scope, Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	var list, seen []string
	for _, s := range found {
		list = append(list, string(s.Session.ID))
	}
	for id := range strings.FieldsSeq("ann ann-safe ann-shop ann-shopping bob secret team topic none") {
		if s, err := l.Seen(t.Context(), scope, id); err == nil && string(s.ID) == id {
			seen = append(seen, id)
		}
	}
	if slices.Sort(list); !slices.Equal(list, seen) {
		t.Errorf("listed are %v, and seen are %v", list, seen)
	}
	return strings.Join(list, " ")
}

// A turn reads the sessions of the chats where its user is allowed at that moment; in a group only the
// sessions of the group and of shared projects.
func TestWhatATurnReads(t *testing.T) {
	l := newLibrary(t)
	turn := func(user orchestrator.PersonID, chat int64, topic int, of orchestrator.RightsOf) orchestrator.Turn {
		return orchestrator.Turn{ID: "t", Prompt: orchestrator.Prompt{Person: user, Rights: orchestrator.Rights{Of: of},
			Conversation: orchestrator.ConversationID{Chat: chat, Topic: topic}}}
	}
	job := turn(ann, ann, 0, orchestrator.RightsOfChat)
	job.ID = orchestrator.JobRun{ID: "j"}.Turn()
	const all = "ann ann-safe ann-shop ann-shopping "
	for _, c := range []struct {
		name, want string
		turn       orchestrator.Turn
	}{
		{"the owner", all + "secret team topic", turn(ann, ann, 0, orchestrator.RightsOfChat)},
		{"another user, who never wrote in one group,", "bob team topic", turn(bob, bob, 0, orchestrator.RightsOfChat)},
		{"the owner in a group", "ann-shop team topic", turn(ann, team, 0, orchestrator.RightsOfChat)},
		{"another user in a topic", "bob team topic", turn(bob, team, 3, orchestrator.RightsOfChat)},
		{"a member", "team", turn(66, team, 0, orchestrator.RightsOfMember)},
		{"a member in a topic", "topic", turn(66, team, 3, orchestrator.RightsOfMember)},
		{"a job", strings.TrimSpace(all), job},
		{"a webhook", "team", turn(0, team, 0, orchestrator.RightsOfJob)},
		{"a scheduled prompt", strings.TrimSpace(all), turn(ann, ann, 0, orchestrator.RightsOfPress)},
		{"a terminal in the chat of another user", "bob", turn(ann, bob, 0, orchestrator.RightsOfChat)},
		{"who was never listed", "", turn(66, 66, 0, orchestrator.RightsOfChat)},
	} {
		if got := l.readable(t, c.turn); got != c.want {
			t.Errorf("%s reads %q, want %q", c.name, got, c.want)
		}
	}
	l.groups = []int64{secret}
	if got := l.readable(t, turn(bob, bob, 0, orchestrator.RightsOfChat)); got != "bob" {
		t.Errorf("after ductor left the group, a user reads %q", got)
	}
	delete(l.roster, bob)
	l.groups = []int64{team}
	if got := l.readable(t, turn(bob, bob, 0, orchestrator.RightsOfChat)); got != "bob" {
		t.Errorf("a user who was removed reads %q", got)
	}
	if got := l.readable(t, turn(bob, team, 0, orchestrator.RightsOfChat)); got != "team" {
		t.Errorf("a user who was removed reads in the group %q", got)
	}
}
