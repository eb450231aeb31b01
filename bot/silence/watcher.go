// Package silence notifies users if an agent has reported nothing for a long time. The notice has the buttons "Stop",
// which stops the turn, and "Wait", which removes the notice.
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

// Action is the first part of the data of the button "Wait".
const Action = "W"

// Options configures a Watcher. All fields except Quiet are required.
type Options struct {
	Messages *message.Messages
	Stop     func(p lang.Printer, turn cli.TurnID) tgapi.Button // returns a button that stops the turn
	After    func() time.Duration                               // silence after which a notice is sent; 0: never
	Quiet    func(at time.Time) bool                            // reports whether notices must make no sound
	Lang     *lang.Choices
}

// Watcher notifies users of silent agents. It is safe for concurrent use.
type Watcher struct {
	opts Options

	mu    sync.Mutex
	turns map[cli.TurnID]*Turn
}

// New returns a Watcher.
func New(o Options) *Watcher { return &Watcher{opts: o, turns: make(map[cli.TurnID]*Turn)} }

// Follow starts to watch a running turn. It returns nil if notices are disabled.
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

// Press handles the button "Wait". It removes the notice, and prevents further notices of the turn. messageID
// identifies the message with the button, and data is the button's data without the action.
func (w *Watcher) Press(ctx context.Context, in orchestrator.ConversationID, messageID int,
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
	key, err := w.opts.Messages.KeyAt(ctx, in, messageID)
	if err != nil || key != keyOf(turn) {
		return tgapi.Stale(p), err
	}
	w.Forget(turn, in)
	return tgapi.Answer{Text: p.Text("silence.waiting")}, nil
}

// Forget removes the notice of a turn, in case a previous process has sent it.
func (w *Watcher) Forget(turn cli.TurnID, in orchestrator.ConversationID) {
	w.open(turn, in, func() message.Content {
		return message.Content{Lifecycle: message.DeleteWhenDone}
	}).Update(outbox.Awaited)
}

// state defines whether the chat shows a notice for a turn.
type state int

const (
	active state = iota // the chat shows no notice: the agent was active recently
	paused              // the chat shows no notice: the turn is paused, or waits for a user
	silent              // the chat shows the notice: the agent has sent nothing for a long time
	waited              // no further notice will follow: a user pressed "Wait", or the turn has ended
)

// Turn watches one turn. Methods of a nil *Turn do nothing. Observe must not be called concurrently. All other methods
// are safe for concurrent use.
type Turn struct {
	watcher *Watcher
	turn    orchestrator.Turn
	after   time.Duration
	notice  *message.Message
	timer   *time.Timer

	start        time.Time
	lastActivity atomic.Int64 // time of the last event, in nanoseconds since start
	// needsLock tells Observe to lock mu for every event. It is true while a notice is shown, while the turn is paused,
	// and after the timer has fired.
	needsLock atomic.Bool

	mu    sync.Mutex
	state state
	asks  cli.Asks
	tools map[cli.ToolID]string // titles of the running tools
}

// Observe handles an event of the turn. Events with text, which are the most frequent, usually need no lock.
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

// noteLocked records an event and returns the new state.
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

// elapsed is called by the timer. If the agent has been silent since the timer started, elapsed shows the notice.
// Otherwise, it starts the timer again for the remaining time.
func (k *Turn) elapsed() {
	k.mu.Lock()
	k.needsLock.Store(true) // set needsLock before reading lastActivity, so that no concurrent Observe is missed
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

// end removes the notice and sets the state of the turn to s.
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

// Ended removes the notice, because the turn has ended.
func (k *Turn) Ended() {
	if k != nil {
		k.end(waited)
		k.drop()
	}
}

// Left stops watching the turn, because ductor is stopping. The notice stays in the chat, because the turn continues.
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
