package mcp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ductor/cli"
	"ductor/internal/statesocket"
	"ductor/mcp/relay"
	"ductor/orchestrator"
)

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.knobs.time()
}

func (w *world) OpenOutside(ctx context.Context, o orchestrator.Outsider) (orchestrator.ActiveTurn, func(), error) {
	if o.Name == "moved" {
		return orchestrator.ActiveTurn{}, nil, &cli.Failure{Kind: cli.NoDirectory, Reason: "/shop: a link"}
	}
	turn := *w.turn
	turn.Turn = orchestrator.Turn{ID: cli.TurnID(orchestrator.OutsideTurn + o.Name + ":1"), Agent: o.Agent(),
		Prompt: orchestrator.Prompt{Conversation: o.Conversation(), Person: o.Owner,
			Rights: orchestrator.Rights{Of: orchestrator.RightsOfOutside}}}
	turn.Request.Permission, turn.Life = cli.Ask, ctx
	return turn, func() {}, nil
}

// grant creates a token for a client outside of turns.
func (r *rig) grant(name string) string {
	r.t.Helper()
	token, err := relay.CreateGrant(r.dir, relay.Grant{Name: name}, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func (r *rig) secret() string {
	r.t.Helper()
	secret, err := statesocket.ReadSecret(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return secret
}

func (r *rig) connectOutside(name string) *sdk.ClientSession {
	r.t.Helper()
	s, err := r.clientOf(r.grant(name), r.secret())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// A client outside of turns has the tools of a turn, and package cli knows all of them. The owner's chat shows its
// messages under the name of its token, and the audit its calls.
func TestAClientOutsideOfTurns(t *testing.T) {
	r := newRig(t)
	inside, err := r.connect().ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := r.connectOutside("desktop")
	outside, err := s.ListTools(t.Context(), nil)
	if err != nil || len(outside.Tools) != len(inside.Tools) {
		t.Errorf("outside %d tools, inside %d, %v", len(outside.Tools), len(inside.Tools), err)
	}
	for _, tool := range outside.Tools {
		if cli.OwnTool("mcp__ductor__"+tool.Name) == "" {
			t.Errorf("package cli does not know the tool %s", tool.Name)
		}
		if strings.Contains(tool.Description, "Your answer is shown there") {
			t.Errorf("%s is described as in a turn: %s", tool.Name, tool.Description)
		}
	}
	r.answer = func(context.Context) (cli.Decision, error) { return cli.Decision{Allow: true}, nil }
	for tool, args := range map[string]map[string]any{
		"send_message": {"text": "hello hunter2"}, "send_file": {"path": "a.png", "caption": "it"},
		"schedule":     {"when": "every day at 9", "prompt": "Look"},
		"consult_with": {"model": "codex", "question": "Why?"},
		"work_with":    {"agent": "codex", "task": "Fix it"},
	} {
		if text, failed := call(t, s, tool, args); failed {
			t.Errorf("%s: %s", tool, text)
		}
	}
	said := strings.Join(r.notices, "|")
	if !strings.Contains(said, "MCP desktop:\n\nhello ***") || !strings.Contains(said, "a.png MCP desktop: it") {
		t.Errorf("the chat shows %q", r.notices)
	}
	for _, in := range r.knobs.chats {
		if in != home {
			t.Errorf("a message went to %+v", in)
		}
	}
	if len(r.jobs) != 1 || r.jobs[0].Conversation != home || r.jobs[0].Person != 1 {
		t.Errorf("the jobs are %+v", r.jobs)
	}
	own := orchestrator.ConversationID{Chat: 1, Topic: -1}
	if len(r.works) != 1 || r.works[0].Conversation != own || r.works[0].For.Request.Permission != cli.Ask {
		t.Errorf("the work is %+v", r.works)
	}
	if len(r.asked) != 2 { // schedule and work_with
		t.Errorf("the owner decided %d requests", len(r.asked))
	}
	for _, e := range r.audit {
		if e.Agent != "MCP desktop" || e.Conversation != own || !strings.HasPrefix(string(e.Turn), "outside:desktop:") {
			t.Errorf("the audit has %+v", e)
		}
	}
	if len(r.audit) != 5 {
		t.Errorf("the audit has %d calls", len(r.audit))
	}
}

// The owner cannot choose another directory for a client in a chat, so the client names the commands.
func TestAClientWhoseFolderIsReplaced(t *testing.T) {
	r := newRig(t)
	text, failed := call(t, r.connectOutside("moved"), "send_message", map[string]any{"text": "hello"})
	const commands = "ductor mcp token revoke moved, then ductor mcp token moved --project FOLDER"
	if !failed || !strings.Contains(text, "(/shop: a link)") || !strings.Contains(text, commands) {
		t.Errorf("the client gets %q", text)
	}
}

// A client outside of turns is refused with the reason, unless it has a token and the secret and descends from no run.
func TestClientsOutsideOfTurnsThatAreRefused(t *testing.T) {
	r := newRig(t)
	good, secret := r.grant("desktop"), r.secret()
	other := r.grant("old")
	if err := relay.RevokeGrant(r.dir, "old"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		token, secret string
		nested        bool
		want          string
	}{
		"forged":         {good[:len(good)-4] + "AAAA", secret, false, "not valid"},
		"revoked":        {other, secret, false, "not valid"},
		"no secret":      {good, "", false, "secret"},
		"another secret": {good, strings.Repeat("A", len(secret)), false, "secret"},
		"nested":         {good, secret, true, "an agent of ductor started this program"},
	} {
		r.knobs.nested = c.nested
		if _, err := r.clientOf(c.token, c.secret); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.knobs.nested = false
	if _, err := r.clientOf(good, secret); err != nil {
		t.Errorf("the right one: %v", err)
	}
}

// Revoking a token ends the connection of its client and its calls at once. Other clients stay.
func TestARevokedTokenEndsItsConnections(t *testing.T) {
	r := newRig(t)
	s, other := r.connectOutside("desktop"), r.connectOutside("ide")
	asking, withdrawn := make(chan struct{}), make(chan struct{})
	r.answer = func(ctx context.Context) (cli.Decision, error) {
		close(asking)
		<-ctx.Done()
		close(withdrawn)
		return cli.Decision{}, ctx.Err()
	}
	lost := make(chan error, 1)
	go func() {
		_, err := s.CallTool(context.Background(),
			&sdk.CallToolParams{Name: "ask_user", Arguments: map[string]any{"question": "Which?"}})
		lost <- err
	}()
	<-asking
	if err := relay.RevokeGrant(r.dir, "desktop"); err != nil {
		t.Fatal(err)
	}
	if err := relay.EndRevoked(t.Context(), r.dir); err != nil {
		t.Fatal(err)
	}
	<-withdrawn
	if err := <-lost; err == nil {
		t.Error("the call goes on")
	}
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_sessions"}); err == nil ||
		!strings.Contains(err.Error(), "not valid") {
		t.Errorf("another call gives %v", err)
	}
	if text, failed := call(t, other, "send_message", map[string]any{"text": "still here"}); failed {
		t.Errorf("another client: %s", text)
	}
	// Without EndRevoked, the next call fails.
	if err := relay.RevokeGrant(r.dir, "ide"); err != nil {
		t.Fatal(err)
	}
	if text, failed := call(t, other, "send_message", map[string]any{"text": "x"}); !failed ||
		!strings.Contains(text, "not valid") {
		t.Errorf("after its end: %s", text)
	}
	r.stop()
	if err := relay.EndRevoked(t.Context(), r.dir); err != nil {
		t.Errorf("without a ductor: %v", err)
	}
	r.start()
}

// A client outside of turns has the limits of a turn, for some minutes at a time.
func TestLimitsOutsideOfTurns(t *testing.T) {
	r := newRig(t)
	r.knobs.now = time.Date(2030, 1, 1, 12, 3, 0, 0, time.UTC)
	s := r.connectOutside("desktop")
	ask := func() (string, bool) {
		return call(t, s, "consult_with", map[string]any{"model": "codex", "question": "Why?"})
	}
	for range 8 {
		if text, failed := ask(); failed {
			t.Fatal(text)
		}
	}
	if text, failed := ask(); !failed || !strings.Contains(text, "within 10 minutes this client has") {
		t.Errorf("too many questions: %s", text)
	}
	r.mu.Lock()
	r.knobs.now = r.knobs.now.Add(10 * time.Minute)
	r.mu.Unlock()
	if text, failed := ask(); failed {
		t.Errorf("later: %s", text)
	}
}

// A client survives a restart of ductor; see TestTheRelayOutlivesARestart. A client that connects while ductor ends
// waits for the next ductor.
func TestAClientOutsideOfTurnsOutlivesARestart(t *testing.T) {
	r := newRig(t)
	s := r.connectOutside("desktop")
	r.srv.EndOutside()
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_sessions"}); err == nil ||
		!strings.Contains(err.Error(), "restarted") {
		t.Errorf("while ductor ends: %v", err)
	}
	r.stop()
	r.start()
	if text, failed := call(t, s, "send_message", map[string]any{"text": "still here"}); failed {
		t.Errorf("after the restart: %s", text)
	}
}

// The file of tokens has no token, only its user can read it, and processes change it one after the other.
func TestGrants(t *testing.T) {
	dir := t.TempDir()
	token, err := relay.CreateGrant(dir, relay.Grant{Name: "desktop"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "mcp-tokens.json")
	raw, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(raw), token) || strings.Contains(string(raw), token[len(token)-20:]) {
		t.Errorf("the file has the token: %s, %v", raw, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	for name, want := range map[string]error{"desktop": relay.ErrTaken, "": relay.ErrBadName, "a b": relay.ErrBadName,
		"a:b": relay.ErrBadName, "-c": relay.ErrBadName, "ä": relay.ErrBadName,
		strings.Repeat("x", 33): relay.ErrBadName} {
		if _, err := relay.CreateGrant(dir, relay.Grant{Name: name}, time.Now()); !errors.Is(err, want) {
			t.Errorf("%q gives %v", name, err)
		}
	}
	if err := relay.RevokeGrant(dir, "nothing"); !errors.Is(err, relay.ErrUnknown) {
		t.Errorf("an unknown name gives %v", err)
	}
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			if _, err := relay.CreateGrant(dir, relay.Grant{Name: name}, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := relay.RevokeGrant(dir, "desktop"); err != nil {
		t.Fatal(err)
	}
	again, err := relay.CreateGrant(dir, relay.Grant{Name: "desktop"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, known, err := relay.FindGrant(dir, token); known || err != nil {
		t.Errorf("the revoked one is known: %v, %v", known, err)
	}
	if g, known, err := relay.FindGrant(dir, again); !known || err != nil || g.Number != 6 || g.Name != "desktop" {
		t.Errorf("the new one is %+v, %v, %v", g, known, err)
	}
	if all, err := relay.Grants(dir); err != nil || len(all) != 5 {
		t.Errorf("there are %+v, %v", all, err)
	}
}
