// Package silence tells a chat that the agent of a turn has said nothing for long, with buttons to stop it or to wait.
package silence

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is what the data of the Wait button begins with.
const Action = "W"

// Options are what a Watcher is made of. Quiet may be nil.
type Options struct {
	Messages *message.Messages
	Stop     func(p lang.Printer, turn cli.TurnID) tgapi.Button // ends the turn
	After    func() time.Duration                               // of silence, now; 0 for never
	Quiet    func(at time.Time) bool                            // notices make no sound then
	Lang     *lang.Choices
}

// Watcher watches turns that run. Safe for concurrent use.
type Watcher struct {
	opts Options

	mu    sync.Mutex
	turns map[cli.TurnID]*watched
}

// New makes a Watcher.
func New(o Options) *Watcher { return &Watcher{opts: o, turns: make(map[cli.TurnID]*watched)} }

// Watch gives the card of a turn that runs, watched.
func (w *Watcher) Watch(t orchestrator.Turn, card orchestrator.Card) orchestrator.Card {
	after := w.opts.After()
	if after <= 0 {
		return card
	}
	k := &watched{Card: card, watcher: w, turn: t, after: after, asks: make(cli.Asks), tools: make(map[cli.ToolID]string)}
	k.notice = w.open(t.ID, t.Prompt.Conversation, k.content)
	k.timer = time.AfterFunc(after, k.fell)
	w.mu.Lock()
	w.turns[t.ID] = k
	w.mu.Unlock()
	return k
}

func keyOf(turn cli.TurnID) string { return "silence/" + string(turn) }

func (w *Watcher) open(turn cli.TurnID, to orchestrator.ConversationID, content func() message.Content) *message.Message {
	return w.opts.Messages.Open(message.Spec{
		Key: keyOf(turn), Turn: turn, To: to, Content: func(context.Context) (message.Content, error) { return content(), nil },
	})
}

// Press acts on the Wait button below a message: the notice goes.
func (w *Watcher) Press(ctx context.Context, in orchestrator.ConversationID, below int, data string) (tgapi.Answer, error) {
	p := w.opts.Lang.Of(in.Chat)
	turn := cli.TurnID(data)
	w.mu.Lock()
	k := w.turns[turn]
	w.mu.Unlock()
	if k != nil && k.turn.Prompt.Conversation == in {
		k.end(waited)
		return tgapi.Answer{Text: p.Text("silence.waiting")}, nil
	}
	key, err := w.opts.Messages.At(ctx, in, below)
	if err != nil || key != keyOf(turn) {
		return tgapi.Stale(p), err
	}
	w.Forget(turn, in)
	return tgapi.Answer{Text: p.Text("silence.waiting")}, nil
}

// Forget removes the notice that a process before this one may have left of a turn.
func (w *Watcher) Forget(turn cli.TurnID, in orchestrator.ConversationID) {
	w.open(turn, in, func() message.Content { return message.Content{Life: message.Goes} }).Update(outbox.Awaited)
}

// state is what a turn needs of its notice.
type state int

const (
	heard  state = iota // nothing: the agent says something
	silent              // it is shown
	waited              // nothing any more: a user waits, or the turn has ended
)

// watched is the card of a turn whose agent may fall silent.
type watched struct {
	orchestrator.Card
	watcher *Watcher
	turn    orchestrator.Turn
	after   time.Duration // of silence
	notice  *message.Message
	timer   *time.Timer

	mu     sync.Mutex
	state  state
	shown  bool // the notice was asked for
	paused bool // the turn waits for something else than the agent
	asks   cli.Asks
	tools  map[cli.ToolID]string // that run
}

// Show implements orchestrator.Card.
func (k *watched) Show(ev cli.Event) {
	k.Card.Show(ev)
	k.mu.Lock()
	k.noteLocked(ev)
	if k.state != waited {
		k.state = heard
		k.timer.Reset(k.after)
	}
	gone := k.shown
	k.shown = false
	k.mu.Unlock()
	if gone {
		k.notice.Update(outbox.Awaited)
	}
}

func (k *watched) noteLocked(ev cli.Event) {
	k.paused = false
	k.asks.Note(ev)
	switch ev := ev.(type) {
	case cli.Status:
		k.paused = ev.Kind == cli.StatusPaused || ev.Kind == cli.StatusWaiting && ev.Detail != ""
	case cli.ToolStarted:
		name := render.ToolName(k.watcher.opts.Lang.Of(k.turn.Prompt.Conversation.Chat), ev.Name)
		k.tools[ev.ID] = strings.TrimSpace(name + " " + ev.Title)
	case cli.ToolEnded:
		delete(k.tools, ev.ID)
	}
}

// fell is called when the agent has been silent for so long.
func (k *watched) fell() {
	k.mu.Lock()
	says := k.state == heard && !k.paused && len(k.asks) == 0
	if says {
		k.state, k.shown = silent, true
	}
	k.mu.Unlock()
	if says {
		k.notice.Update(outbox.Awaited)
	}
}

// content is what the notice shows.
func (k *watched) content() message.Content {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state != silent {
		return message.Content{Life: message.Goes}
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
		Text: render.Plain(text), Keyboard: tgapi.Keyboard{{o.Stop(p, k.turn.ID), wait}}, ReplyTo: k.turn.Prompt.Message,
		Silent: o.Quiet != nil && o.Quiet(time.Now()),
	}
}

// end has the notice go, and none come any more.
func (k *watched) end(s state) {
	k.timer.Stop()
	k.mu.Lock()
	shown := k.state == silent || k.shown
	k.state, k.shown = s, false
	k.mu.Unlock()
	if shown {
		k.notice.Update(outbox.Awaited)
	}
}

// Finish implements orchestrator.Card.
func (k *watched) Finish(ctx context.Context, o orchestrator.Outcome) error {
	k.end(waited)
	k.drop()
	return k.Card.Finish(ctx, o)
}

// Leave implements orchestrator.Card. The notice stays: the agent goes on.
func (k *watched) Leave(ctx context.Context) {
	k.timer.Stop()
	k.drop()
	k.Card.Leave(ctx)
}

func (k *watched) drop() {
	k.watcher.mu.Lock()
	defer k.watcher.mu.Unlock()
	delete(k.watcher.turns, k.turn.ID)
}
