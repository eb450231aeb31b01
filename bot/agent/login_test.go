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

func (d *tokenDesk) Logins(context.Context, orchestrator.ConversationID, cli.Agent) ([]cli.Login, error) {
	return []cli.Login{
		{Kind: cli.LoginByToken, Command: "claude setup-token", Variable: "TOKEN"},
		{Kind: cli.LoginByCommand, Command: "claude auth login"},
	}, nil
}

func (d *tokenDesk) LogIn(context.Context, orchestrator.Press, cli.Agent, cli.Login) error {
	return nil
}

func (d *tokenDesk) CancelLogIn(context.Context, orchestrator.Press, cli.Agent) (bool, error) {
	return false, nil
}

func (d *tokenDesk) UseToken(_ context.Context, _ orchestrator.Press, _ cli.Agent, way cli.Login, token string) error {
	d.tokens = append(d.tokens, way.Variable+"="+token)
	return nil
}

// A token is the next message of the user who pressed, in the private chat of the press and for 15 minutes. Without
// that, a message in the form of a token is hidden, too.
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
		"no token":           {here, here, 7, "what is this?", 0, true, false},
		"a command":          {here, here, 7, "/model", 0, false, false},
		"another user":       {here, here, 8, "hello", 0, false, false},
		"another chat":       {here, orchestrator.ConversationID{Chat: 7, Topic: 3}, 7, "hello", 0, false, false},
		"too late":           {here, here, 7, "hello", 20 * time.Minute, false, false},
		"a token, too late":  {here, here, 7, token, 20 * time.Minute, true, false},
		"a token of another": {here, here, 8, token, 0, true, false},
		"a group":            {group, group, 7, token, 0, false, false},
		"a secret in a text": {group, here, 7, token + " is what it printed", 0, false, false},
	} {
		now, desk := time.Unix(0, 0), &tokenDesk{}
		s := NewLogins(desk, nil, func() time.Time { return now })
		answer, err := s.Press(t.Context(), orchestrator.Press{Conversation: tc.pressed, Person: 7}, "claude")
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
		by := orchestrator.Press{Conversation: tc.in, Person: tc.user}
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
