package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/claude"
	"ductor/internal/terminal/hook"
)

// heard is what one hook says.
type heard struct {
	hook.Message
	event event
	s     *Server
	send  func(hook.Answer) error
}

// event is what the CLIs say that matters here, each in its own words.
type event struct {
	claude.Permission
	Name      string `json:"hook_event_name"`
	SessionID string `json:"session_id"`
	Text      string `json:"message"`
	Kind      string `json:"notification_type"`
	Last      string `json:"last_assistant_message"` // Claude's
	Response  string `json:"prompt_response"`        // Gemini's

	// Codex's.
	Type      string `json:"type"`
	Thread    string `json:"thread-id"`
	LastCodex string `json:"last-assistant-message"`
}

func (h heard) session() Session {
	return Session{
		Agent: cli.Agent(h.Agent), ID: cli.AgentSessionID(cmp.Or(h.event.SessionID, h.event.Thread)), Dir: cmp.Or(h.event.Dir, h.Dir),
	}
}

// act does what an event is for, while the owner is away. watch returns when the hook has ended.
func (h heard) act(ctx context.Context, watch func()) {
	if h.ended() {
		h.s.waiting.over(h.session().ID)
	}
	if h.Since.IsZero() && !h.s.opts.Away(ctx) {
		_ = h.send(hook.Answer{}) // a hook that has ended needs none
		return
	}
	if h.event.Name == "PermissionRequest" {
		h.ask(ctx, watch)
		return
	}
	_ = h.send(hook.Answer{})
	switch {
	case h.ended():
		h.finished(ctx)
	case h.event.Name != "Notification", h.event.Kind == "permission_prompt" && h.Agent == "claude": // the request itself is shown
	default:
		h.notify(ctx)
	}
}

// ended says that the agent has ended its turn.
func (h heard) ended() bool {
	return h.event.Name == "Stop" || h.event.Name == "AfterAgent" || h.event.Type == "agent-turn-complete"
}

// ask has the owner decide. Where no decision comes, the CLI asks at its terminal.
func (h heard) ask(ctx context.Context, watch func()) {
	if h.send(hook.Answer{Wait: true}) != nil {
		return
	}
	var watched sync.WaitGroup
	watched.Go(watch)
	of := h.session()
	deciding, done := h.s.waiting.begin(ctx, of.ID)
	defer done()
	wait := h.s.opts.Wait
	if !h.Since.IsZero() {
		wait -= max(time.Since(h.Since), 0)
	}
	deciding, stop := context.WithTimeout(deciding, wait)
	defer stop()
	h.event.Dir = of.Dir
	d, err := h.s.opts.Ask(deciding, of, h.id(), h.event.Asked())
	answer := hook.Answer{}
	switch {
	case errors.Is(err, cli.ErrDetached): // the connection ends without an answer
		watched.Wait()
		return
	case err == nil:
		answer.Output = h.event.Answer(d)
	case deciding.Err() == nil:
		h.s.opts.Log.Error("ask for a terminal; it asks as usual", "err", err)
	}
	_ = h.send(answer) // a hook that has ended needs none
	watched.Wait()     // the hook ends with its answer
}

// id names what is asked. A hook that asks something else under its former id has another.
func (h heard) id() string {
	if h.ID == "" { // a hook of an older version does not ask again
		return ""
	}
	sum := sha256.Sum256(append([]byte(h.ID+"\n"), h.Event...))
	return hex.EncodeToString(sum[:16])
}

// mostText is how much of an agent's last words a report has, in bytes.
const mostText = 3000

func (h heard) notify(ctx context.Context) {
	of := h.session()
	h.report(ctx, Session{Agent: of.Agent, Dir: of.Dir}, h.s.opts.Lang().Text("terminal.says", h.s.opts.Name(of.Agent), h.place(of), h.clean(of, h.event.Text)))
}

func (h heard) finished(ctx context.Context) {
	of := h.session()
	if err := h.s.opts.Seen(ctx, of); err != nil {
		h.s.opts.Log.Error("keep where a session of a terminal is", "err", err)
		of.ID = ""
	}
	text := h.s.opts.Lang().Text("terminal.finished", h.s.opts.Name(of.Agent), h.place(of))
	if last := h.clean(of, cmp.Or(h.event.Last, h.event.Response, h.event.LastCodex)); last != "" {
		text += "\n\n" + last
	}
	h.report(ctx, of, text)
}

func (h heard) report(ctx context.Context, of Session, text string) {
	if err := h.s.opts.Chat.Report(ctx, of, text); err != nil {
		h.s.opts.Log.Error("report from a terminal", "err", err)
	}
}

// clean takes out secrets, and shortens.
func (h heard) clean(of Session, text string) string {
	return cli.Shorten(strings.TrimSpace(h.s.opts.Secrets(of.Dir).String(text)), mostText)
}

// place is the name of the directory, as it stands between backquotes.
func (h heard) place(of Session) string {
	return strings.ReplaceAll(cli.OneLine(filepath.Base(of.Dir), 100), "`", "'")
}
