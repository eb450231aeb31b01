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

// hookCall is a connection from a hook, with its message.
type hookCall struct {
	hook.Message
	event event
	s     *Server
	send  func(hook.Answer) error
}

// event contains the fields that ductor reads from the events of all CLIs.
type event struct {
	claude.Permission
	Name      string `json:"hook_event_name"`
	SessionID string `json:"session_id"`
	Text      string `json:"message"`
	Kind      string `json:"notification_type"`
	Last      string `json:"last_assistant_message"` // last message of the agent; only Claude sends it
	Response  string `json:"prompt_response"`        // last message of the agent; only Gemini sends it

	// Codex sends the following fields.
	Type      string `json:"type"`
	Thread    string `json:"thread-id"`
	LastCodex string `json:"last-assistant-message"`
}

func (h hookCall) session() Session {
	return Session{
		Agent: cli.Agent(h.Agent), ID: cli.AgentSessionID(cmp.Or(h.event.SessionID, h.event.Thread)),
		Dir: cmp.Or(h.event.Dir, h.Dir),
	}
}

// handle handles the event of a hook. It reports the event to the owner only if the owner is away. The function watch
// blocks until the hook disconnects.
func (h hookCall) handle(ctx context.Context, watch func()) {
	if h.turnEnded() {
		h.s.waiting.release(h.session().ID)
	}
	if !h.repeated() && !h.s.opts.Away(ctx) {
		_ = h.send(hook.Answer{}) // fails only if the hook has ended
		return
	}
	if h.event.Name == "PermissionRequest" {
		h.askOwner(ctx, watch)
		return
	}
	_ = h.send(hook.Answer{})
	switch {
	case h.turnEnded():
		h.reportFinished(ctx)
	case h.event.Name != "Notification", h.event.Kind == "permission_prompt" && h.Agent == "claude":
		// Ignore Claude's notification about a permission. For the same permission, Claude sends a PermissionRequest,
		// and ductor then asks the owner.
	default:
		h.reportNotification(ctx)
	}
}

// repeated reports whether the hook sent the message first to an earlier process of ductor, which promised an answer.
func (h hookCall) repeated() bool { return !h.Since.IsZero() && h.Since.Before(h.s.started) }

// turnEnded reports whether the event means that the agent's turn has ended.
func (h hookCall) turnEnded() bool {
	return h.event.Name == "Stop" || h.event.Name == "AfterAgent" || h.event.Type == "agent-turn-complete"
}

// askOwner asks the owner in the chat, and sends the decision to the hook. If the owner makes no decision, the CLI asks
// in its terminal.
func (h hookCall) askOwner(ctx context.Context, watch func()) {
	if h.send(hook.Answer{Wait: true}) != nil {
		return
	}
	var watched sync.WaitGroup
	watched.Go(watch)
	of := h.session()
	deciding, done := h.s.waiting.addWaiter(ctx, of.ID)
	defer done()
	wait := h.s.opts.Wait
	if h.repeated() {
		wait -= time.Since(h.Since)
	}
	deciding, stop := context.WithTimeout(deciding, wait)
	defer stop()
	h.event.Dir = of.Dir
	d, err := h.s.opts.Ask(deciding, of, h.questionID(), h.event.Asked())
	answer := hook.Answer{}
	switch {
	case errors.Is(err, cli.ErrDetached): // ductor is exiting; the hook will ask the next ductor process
		watched.Wait()
		return
	case err == nil:
		answer.Output = h.event.Answer(d)
	case deciding.Err() == nil:
		h.s.opts.Log.Error("ask the owner for a terminal; the CLI asks there instead", "err", err)
	}
	_ = h.send(answer) // fails if the hook has already exited
	watched.Wait()     // returns soon, because the hook exits after it gets its answer
}

// questionID returns the ID of a question to the owner. The ID depends on the event, so that a hook cannot use the ID
// of another question and get the answer to that question.
func (h hookCall) questionID() string {
	if h.ID == "" { // hooks of older versions of ductor never repeat a message
		return ""
	}
	sum := sha256.Sum256(append([]byte(h.ID+"\n"), h.Event...))
	return hex.EncodeToString(sum[:16])
}

// maxReport limits the part of an agent's last message in a report, in bytes.
const maxReport = 3000

func (h hookCall) reportNotification(ctx context.Context) {
	of := h.session()
	h.report(ctx, Session{Agent: of.Agent, Dir: of.Dir},
		h.s.opts.Lang().Text("terminal.says", h.s.opts.Name(of.Agent), h.dirName(of), h.cleanText(of, h.event.Text)))
}

func (h hookCall) reportFinished(ctx context.Context) {
	of := h.session()
	if err := h.s.opts.Seen(ctx, of); err != nil {
		h.s.opts.Log.Error("store the directory of a terminal session", "err", err)
		of.ID = ""
	}
	text := h.s.opts.Lang().Text("terminal.finished", h.s.opts.Name(of.Agent), h.dirName(of))
	if last := h.cleanText(of, cmp.Or(h.event.Last, h.event.Response, h.event.LastCodex)); last != "" {
		text += "\n\n" + last
	}
	h.report(ctx, of, text)
}

func (h hookCall) report(ctx context.Context, of Session, text string) {
	if err := h.s.opts.Chat.Report(ctx, of, text); err != nil {
		h.s.opts.Log.Error("report from a terminal", "err", err)
	}
}

// cleanText shortens a text and removes secrets from it.
func (h hookCall) cleanText(of Session, text string) string {
	return cli.Shorten(strings.TrimSpace(h.s.opts.Secrets(of.Dir).String(text)), maxReport)
}

// dirName returns the name of the session's directory, without backquotes, because reports contain the name between
// backquotes.
func (h hookCall) dirName(of Session) string {
	return strings.ReplaceAll(cli.OneLine(filepath.Base(of.Dir), 100), "`", "'")
}
