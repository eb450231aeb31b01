package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// state is the activity of a topic's conversation. It is stored in the database.
type state string

const (
	idle    state = "idle"
	working state = "working"
	waiting state = "waiting" // the agent waits for a user's decision or answer
	failed  state = "failed"
)

// emoji returns the icon of a state. It returns only emoji that Telegram allows as icons.
func (s state) emoji() string {
	return map[state]string{idle: "💬", working: "⚡", waiting: "❓", failed: "❗"}[s]
}

// Telegram writes a line into the topic for each change of its icon. These limits make changes rare.
const (
	settleDelay = 3 * time.Second  // pause before a change, in case the state changes again
	minInterval = 30 * time.Second // shortest time between two changes
)

// Client changes the icons of topics. *tgapi.Client implements it.
type Client interface {
	SetTopicIcon(ctx context.Context, in orchestrator.ConversationID, icon string) error
}

// IconOptions configures Icons. All fields are required.
type IconOptions struct {
	Store  orchestrator.TopicStore
	Client Client
	// All returns the IDs of the available icons by their emoji. See tgapi.API.TopicIcons.
	All    func(ctx context.Context) (map[string]string, error)
	Outbox *outbox.Outbox
	Log    *slog.Logger
}

// Icons shows the activity of conversations in the icons of their topics. It changes only topics that ductor opened. It
// is safe for concurrent use.
type Icons struct {
	opts IconOptions

	mu     sync.Mutex
	topics map[orchestrator.ConversationID]*topic
	ids    map[string]string // IDs of all icons by emoji; nil before the first change
}

// topic is a topic that ductor opened.
type topic struct {
	wants, shows state
	changed      time.Time // time of the last change of the icon
	due          bool
}

// NewIcons returns Icons for all stored topics. An icon may still show that a turn of the previous process is running
// or waiting. NewIcons schedules the change of such an icon to idle. If the turn continues in this process, the caller
// must call Follow, which cancels the change.
func NewIcons(ctx context.Context, o IconOptions) (*Icons, error) {
	i := &Icons{opts: o, topics: map[orchestrator.ConversationID]*topic{}}
	stored, err := o.Store.Topics(ctx)
	if err != nil {
		return nil, fmt.Errorf("load topics: %w", err)
	}
	for in, shows := range stored {
		i.topics[in] = &topic{shows: state(shows), wants: state(shows), changed: time.Now()}
		if s := state(shows); s == working || s == waiting {
			i.set(in, idle)
		}
	}
	return i, nil
}

// Opened records that ductor has opened a topic.
func (i *Icons) Opened(ctx context.Context, in orchestrator.ConversationID) error {
	if err := i.opts.Store.SaveTopic(ctx, in, string(idle)); err != nil {
		return fmt.Errorf("keep a topic: %w", err)
	}
	i.mu.Lock()
	i.topics[in] = &topic{wants: idle}
	i.scheduleLocked(in, settleDelay)
	i.mu.Unlock()
	return nil
}

// Follow changes the icon of the turn's topic to "working". It returns nil if ductor did not open the topic.
func (i *Icons) Follow(t orchestrator.Turn) *TopicTurn {
	in := t.Prompt.Conversation
	if !i.set(in, working) {
		return nil
	}
	return &TopicTurn{icons: i, in: in, asks: cli.Asks{}}
}

// Ended makes the icon of a topic show how the turn has ended.
func (i *Icons) Ended(in orchestrator.ConversationID, o orchestrator.Outcome) {
	s := idle
	if o.State == orchestrator.TurnFailed || o.State == orchestrator.TurnInterrupted {
		s = failed
	}
	i.set(in, s)
}

// set sets the state of a topic, and schedules a change of its icon if necessary. It returns false if ductor did not
// open the topic.
func (i *Icons) set(in orchestrator.ConversationID, s state) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	t := i.topics[in]
	if t == nil {
		return false
	}
	if t.wants = s; t.wants != t.shows {
		i.scheduleLocked(in, max(settleDelay, minInterval-time.Since(t.changed)))
	}
	return true
}

// scheduleLocked schedules a change of the topic's icon. It does nothing if a change is already scheduled.
func (i *Icons) scheduleLocked(in orchestrator.ConversationID, after time.Duration) {
	t := i.topics[in]
	if t.due {
		return
	}
	t.due = true
	time.AfterFunc(after, func() {
		i.opts.Outbox.Go(context.Background(), outbox.Call{
			Chat: outbox.ChatOf(in.Chat), Delivery: outbox.Newest, Priority: outbox.Indicator,
			Key: fmt.Sprint("icon/", in.Topic), Idempotent: true,
			Run: func(ctx context.Context) error { return i.change(ctx, in) },
		}, func(err error) { i.done(in, err) })
	})
}

// change updates the icon of a topic to its current state.
func (i *Icons) change(ctx context.Context, in orchestrator.ConversationID) error {
	id, wants, err := i.icon(ctx, in)
	if err != nil || wants == "" {
		return cmp.Or(err, outbox.ErrNotNeeded)
	}
	err = i.opts.Client.SetTopicIcon(ctx, in, id)
	switch tgapi.FaultOf(err).Kind {
	case tgapi.TopicGone, tgapi.ChatGone, tgapi.ChatMoved, tgapi.NoTopics:
		i.mu.Lock()
		delete(i.topics, in)
		i.mu.Unlock()
		return i.opts.Store.SaveTopic(ctx, in, "")
	case tgapi.BadRequest, tgapi.NoTopicRight:
		i.opts.Log.Warn("change the icon of a topic", "chat", in.Chat, "topic", in.Topic, "err", err) // do not retry
	default:
		if err != nil {
			return err
		}
	}
	i.mu.Lock()
	i.topics[in].shows, i.topics[in].changed = wants, time.Now()
	i.mu.Unlock()
	return i.opts.Store.SaveTopic(ctx, in, string(wants))
}

// icon returns the ID of a topic's new icon, and the state that the new icon shows. It returns empty values if the icon
// need not change, or if Telegram offers no icon for the state.
func (i *Icons) icon(ctx context.Context, in orchestrator.ConversationID) (id string, wants state, err error) {
	i.mu.Lock()
	ids := i.ids
	i.mu.Unlock()
	if ids == nil {
		if ids, err = i.opts.All(ctx); err != nil {
			return "", "", err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ids = ids
	t := i.topics[in]
	if t == nil || t.wants == t.shows {
		return "", "", nil
	}
	if id = ids[t.wants.emoji()]; id == "" {
		t.shows = t.wants
		return "", "", nil
	}
	return id, t.wants, nil
}

// done records whether a change has succeeded. After a failed change, it schedules another one.
func (i *Icons) done(in orchestrator.ConversationID, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t := i.topics[in]
	if t == nil || errors.Is(err, outbox.ErrClosed) {
		return
	}
	if t.due = false; err != nil {
		i.opts.Log.Warn("change the icon of a topic", "chat", in.Chat, "topic", in.Topic, "err", err)
	}
	if t.wants != t.shows {
		i.scheduleLocked(in, minInterval)
	}
}

// TopicTurn updates the icon of a topic while a turn runs. Methods of a nil *TopicTurn do nothing. It is not safe for
// concurrent use.
type TopicTurn struct {
	icons *Icons
	in    orchestrator.ConversationID
	asks  cli.Asks
}

// Observe handles an event of the turn. It changes the icon when the agent starts to wait for a user, or stops waiting.
func (t *TopicTurn) Observe(ev cli.Event) {
	if t == nil || !t.asks.Note(ev) {
		return
	}
	s := working
	if len(t.asks) > 0 {
		s = waiting
	}
	t.icons.set(t.in, s)
}
