package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// tokenDesk records the tokens that it gets.
type tokenDesk struct{ tokens []string }

func (d *tokenDesk) LogInOf(_ context.Context, _ orchestrator.ConversationID,
	id orchestrator.LogInID) (orchestrator.AgentEnv, error) {
	of, _ := id.Env()
	return of, nil
}

func (d *tokenDesk) Logins(orchestrator.AgentEnv) []cli.Login {
	return []cli.Login{
		{Kind: cli.LoginByToken, Command: "claude setup-token", Variable: "TOKEN"},
		{Kind: cli.LoginByCommand, Command: "claude auth login"},
	}
}

func (d *tokenDesk) LogIn(orchestrator.Press, orchestrator.AgentEnv, cli.Login) error { return nil }

func (d *tokenDesk) CancelLogIn(orchestrator.AgentEnv) bool { return false }

func (d *tokenDesk) UseToken(_ context.Context, _ orchestrator.Press, _ orchestrator.AgentEnv, way cli.Login,
	token string) error {
	d.tokens = append(d.tokens, way.Variable+"="+token)
	return nil
}

// A token is awaited of the user who pressed, in the private chat of the press and for 15 minutes. Without that, a
// message in the form of a token is hidden, too. Other messages pass.
func TestTokens(t *testing.T) {
	const token = "sk-ant-oat01-0123456789abcdef"
	here := orchestrator.ConversationID{Chat: 7}
	group := orchestrator.ConversationID{Chat: -7}
	for name, tc := range map[string]struct {
		pressed, in orchestrator.ConversationID
		user        orchestrator.PersonID // the sender; 7 has pressed
		text        string
		after       time.Duration
		taken, used bool
	}{
		"the token":          {here, here, 7, " " + token[:15] + "\n" + token[15:], time.Minute, true, true},
		"no token":           {here, here, 7, "what is this?", 0, false, false},
		"its beginning":      {here, here, 7, token[:12], 0, true, false},
		"its end":            {here, here, 7, token[7:], 0, true, false},
		"an address":         {here, here, 7, "https://example.com/a/long/one", 0, false, false},
		"a long word, late":  {here, here, 7, token[7:], 20 * time.Minute, false, false},
		"a command":          {here, here, 7, "/model", 0, false, false},
		"another user":       {here, here, 8, "hello", 0, false, false},
		"another chat":       {here, orchestrator.ConversationID{Chat: 7, Topic: 3}, 7, "hello", 0, false, false},
		"too late":           {here, here, 7, "hello", 20 * time.Minute, false, false},
		"a token, too late":  {here, here, 7, token, 20 * time.Minute, true, false},
		"a token of another": {here, here, 8, token, 0, true, false},
		"a group":            {group, group, 7, token, 0, true, false},
		"a secret in a text": {group, here, 7, token + " is what it printed", 0, false, false},
	} {
		now, desk := time.Unix(0, 0), &tokenDesk{}
		s := NewLogins(desk, nil, func() time.Time { return now })
		by := orchestrator.Press{Conversation: tc.pressed, Person: 7, Role: orchestrator.RoleOwner}
		answer, err := s.Press(t.Context(), by, "claude")
		if private := !tc.pressed.Group(); err != nil || private != (len(answer.Messages) == 1) {
			t.Errorf("%s: the press is answered with %+v, %v", name, answer, err)
		}
		now = now.Add(tc.after)
		if got := s.Take(tc.in, tc.user, 1, tc.text); got != tc.taken {
			t.Errorf("%s: taken: %v", name, got)
		}
		if !tc.taken {
			continue
		}
		by = orchestrator.Press{Conversation: tc.in, Person: tc.user, Role: orchestrator.RoleOwner}
		said := s.Paste(t.Context(), by, 1)
		used := len(desk.tokens) == 1 && desk.tokens[0] == "TOKEN="+token
		if used != tc.used || strings.Contains(said, token[:12]) {
			t.Errorf("%s: %q; the desk has %q", name, said, desk.tokens)
		}
		again := s.Paste(t.Context(), by, 1)
		if len(desk.tokens) > 1 || !strings.Contains(again, "wasn't waiting") && tc.used {
			t.Errorf("%s: it is used twice: %q", name, again)
		}
	}
}

// A token counts only if its sender is still an owner, and not only was one when ductor asked for the token.
func TestAFormerOwnerLogsNoAgentIn(t *testing.T) {
	const token = "sk-ant-oat01-0123456789abcdef"
	desk := &tokenDesk{}
	s := NewLogins(desk, nil, time.Now)
	by := orchestrator.Press{Person: 7, Role: orchestrator.RoleOwner}
	by.Conversation.Chat = 7
	if _, err := s.Press(t.Context(), by, "claude"); err != nil || !s.Take(by.Conversation, 7, 1, token) {
		t.Fatalf("the token is not awaited: %v", err)
	}
	by.Role = orchestrator.RoleUser
	if said := s.Paste(t.Context(), by, 1); len(desk.tokens) > 0 || !strings.HasPrefix(said, "Only the owner") {
		t.Errorf("%q; the desk has %q", said, desk.tokens)
	}
}

func TestOwnersLogAgentsIn(t *testing.T) {
	s := NewLogins(&tokenDesk{}, nil, time.Now)
	by := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 8}, Person: 8, Role: orchestrator.RoleUser}
	a, err := s.Press(t.Context(), by, "claude")
	if err != nil || len(a.Messages) > 0 || !strings.Contains(a.Text, "Only the owner") {
		t.Errorf("a user's press is answered with %+v, %v", a, err)
	}
	if s.Take(by.Conversation, 8, 1, "what is this?") {
		t.Error("a token of the user is awaited")
	}
}

func TestTheOldestHeldTokenIsDropped(t *testing.T) {
	s := NewLogins(&tokenDesk{}, nil, time.Now)
	for i := range int64(mostHeld + 1) {
		s.Take(orchestrator.ConversationID{Chat: 7}, 7, i, "sk-ant-oat01-0123456789abcdef")
	}
	if _, has := s.held[0]; has || len(s.held) != mostHeld {
		t.Errorf("%d tokens are held, the first one: %v", len(s.held), has)
	}
}
