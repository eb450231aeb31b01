// Package silence notifies a chat when the agent of a turn has been silent for long. The notice has buttons to stop the
// turn or to wait.
package silence

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action starts the data of the Wait button.
const Action = "W"

// Options configures a Watcher. Quiet may be nil.
type Options struct {
	Messages *message.Messages
	Stop     func(p lang.Printer, turn cli.TurnID) tgapi.Button // stops the turn
	After    func() time.Duration                               // returns the current limit of silence; 0: never notify
	Quiet    func(at time.Time) bool                            // reports whether notices are silent
	Lang     *lang.Choices
}

// Watcher watches running turns. Safe for concurrent use.
type Watcher struct {
	opts Options

	mu    sync.Mutex
	turns map[cli.TurnID]*Turn
}

// New returns a Watcher.
func New(o Options) *Watcher { return &Watcher{opts: o, turns: make(map[cli.TurnID]*Turn)} }

// Follow starts watching a running turn. It returns nil if notices are disabled.
func (w *Watcher) Follow(t orchestrator.Turn) *Turn {
	after := w.opts.After()
	if after <= 0 {
		return nil
	}
	k := &Turn{
		watcher: w, turn: t, after: after, start: time.Now(), asks: make(cli.Asks), tools: make(map[cli.ToolID]string),
	}
	k.notice = w.open(t.ID, t.Prompt.Conversation, k.content)
	k.timer = time.AfterFunc(after, k.elapsed)
	w.mu.Lock()
	w.turns[t.ID] = k
	w.mu.Unlock()
	return k
}

func keyOf(turn cli.TurnID) string { return "silence/" + string(turn) }

func (w *Watcher) open(turn cli.TurnID, to orchestrator.ConversationID,
	content func() message.Content) *message.Message {
	return w.opts.Messages.Open(message.Spec{
		Key: keyOf(turn), Turn: turn, To: to, Content: func(context.Context) (message.Content, error) {
			return content(), nil
		},
	})
}

// Press handles the Wait button of a message. It removes the notice.
func (w *Watcher) Press(ctx context.Context, in orchestrator.ConversationID, below int,
	data string) (tgapi.Answer, error) {
	p := w.opts.Lang.Of(in.Chat)
	turn := cli.TurnID(data)
	w.mu.Lock()
	k := w.turns[turn]
	w.mu.Unlock()
	if k != nil && k.turn.Prompt.Conversation == in {
		k.end(waited)
		return tgapi.Answer{Text: p.Text("silence.waiting")}, nil
	}
	key, err := w.opts.Messages.KeyAt(ctx, in, below)
	if err != nil || key != keyOf(turn) {
		return tgapi.Stale(p), err
	}
	w.Forget(turn, in)
	return tgapi.Answer{Text: p.Text("silence.waiting")}, nil
}

// Forget removes the notice of a turn that a previous process may have sent.
func (w *Watcher) Forget(turn cli.TurnID, in orchestrator.ConversationID) {
	w.open(turn, in, func() message.Content {
		return message.Content{Lifecycle: message.DeleteWhenDone}
	}).Update(outbox.Awaited)
}

// state describes whether a turn has a notice, and why.
type state int

const (
	active state = iota // no notice: the agent is active
	paused              // no notice: the turn waits, but not for the agent
	silent              // the chat shows the notice
	waited              // no more notices: a user pressed Wait, or the turn has ended
)

// Turn watches one turn. A nil Turn does nothing. Calls of Observe must not be concurrent; all other methods are safe
// for concurrent use.
type Turn struct {
	watcher *Watcher
	turn    orchestrator.Turn
	after   time.Duration // limit of silence
	notice  *message.Message
	timer   *time.Timer

	start        time.Time
	lastActivity atomic.Int64 // time.Duration since start
	// needsLock reports whether the next event changes more than lastActivity, because the notice is shown, the turn
	// is paused or the timer does not run.
	needsLock atomic.Bool

	mu    sync.Mutex
	state state
	asks  cli.Asks
	tools map[cli.ToolID]string // running tools
}

// Observe handles an event of the turn. Text, the most frequent event, needs no lock.
func (k *Turn) Observe(ev cli.Event) {
	if k == nil {
		return
	}
	k.lastActivity.Store(int64(time.Since(k.start)))
	switch ev.(type) {
	case cli.TextDelta, cli.ThinkingDelta:
		if !k.needsLock.Load() {
			return
		}
	}
	k.mu.Lock()
	next := k.noteLocked(ev)
	shown := k.state == silent
	if k.state != waited {
		k.state = next
		k.timer.Reset(k.after)
	}
	k.needsLock.Store(k.state == paused)
	k.mu.Unlock()
	if shown {
		k.notice.Update(outbox.Awaited)
	}
}

// noteLocked records an event and returns the state after it.
func (k *Turn) noteLocked(ev cli.Event) state {
	k.asks.Note(ev)
	switch ev := ev.(type) {
	case cli.Status:
		if ev.Kind == cli.StatusPaused || ev.Kind == cli.StatusWaiting && ev.Detail != "" {
			return paused
		}
	case cli.ToolStarted:
		name := render.ToolName(k.watcher.opts.Lang.Of(k.turn.Prompt.Conversation.Chat), ev.Name)
		k.tools[ev.ID] = strings.TrimSpace(name + " " + ev.Title)
	case cli.ToolChanged:
		return k.noteLocked(ev.ToolStarted)
	case cli.ToolEnded:
		delete(k.tools, ev.ID)
	}
	return active
}

// elapsed handles the timer. It shows the notice if the agent was silent for the whole time. Otherwise it restarts
// the timer for the remaining time.
func (k *Turn) elapsed() {
	k.mu.Lock()
	k.needsLock.Store(true) // before reading lastActivity, so that no event is missed in between
	rest := k.after - (time.Since(k.start) - time.Duration(k.lastActivity.Load()))
	says := false
	switch {
	case k.state != active:
	case rest > 0:
		k.needsLock.Store(false)
		k.timer.Reset(rest)
	case len(k.asks) == 0:
		k.state, says = silent, true
	}
	k.mu.Unlock()
	if says {
		k.notice.Update(outbox.Awaited)
	}
}

// content returns the content of the notice.
func (k *Turn) content() message.Content {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state != silent {
		return message.Content{Lifecycle: message.DeleteWhenDone}
	}
	o := k.watcher.opts
	p := o.Lang.Of(k.turn.Prompt.Conversation.Chat)
	text := p.Text("silence.notice", render.AgentName(p, k.turn.Agent), p.Rounded(k.after))
	if len(k.tools) == 1 {
		for _, tool := range k.tools {
			text += "\n" + p.Text("silence.tool", render.ShortLine(tool, 120))
		}
	}
	wait := tgapi.Button{Text: p.Text("silence.wait"), Data: fmt.Sprint(Action, ":", k.turn.ID)}
	return message.Content{
		Text: render.Plain(text), Keyboard: tgapi.Keyboard{{o.Stop(p, k.turn.ID), wait}},
		ReplyTo: k.turn.Prompt.Message,
		Silent:  o.Quiet != nil && o.Quiet(time.Now()),
	}
}

// end removes the notice and prevents further notices.
func (k *Turn) end(s state) {
	k.timer.Stop()
	k.mu.Lock()
	shown := k.state == silent
	k.state = s
	k.mu.Unlock()
	if shown {
		k.notice.Update(outbox.Awaited)
	}
}

// Ended removes the notice of a turn that ended.
func (k *Turn) Ended() {
	if k != nil {
		k.end(waited)
		k.drop()
	}
}

// Left stops watching a turn that continues while ductor is not running. The notice stays.
func (k *Turn) Left() {
	if k != nil {
		k.timer.Stop()
		k.drop()
	}
}

func (k *Turn) drop() {
	k.watcher.mu.Lock()
	defer k.watcher.mu.Unlock()
	delete(k.watcher.turns, k.turn.ID)
}
