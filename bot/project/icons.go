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

// state is what a conversation does. It is stored.
type state string

const (
	idle    state = "idle"
	working state = "working"
	waiting state = "waiting" // for a user
	failed  state = "failed"
)

// emoji are the icons of states. Telegram has few icons that all users may give; these are among them.
func (s state) emoji() string {
	return map[state]string{idle: "💬", working: "⚡", waiting: "❓", failed: "❗"}[s]
}

// Each change of an icon is a line in the topic: a state that passes soon is not shown, and changes are far apart.
const (
	settles = 3 * time.Second
	apart   = 30 * time.Second
)

// Client changes icons. *tgapi.Client is one.
type Client interface {
	SetTopicIcon(ctx context.Context, in orchestrator.ConversationID, icon string) error
}

// IconOptions configure Icons. All are required.
type IconOptions struct {
	Store  orchestrator.TopicStore
	Client Client
	All    func(ctx context.Context) (map[string]string, error) // the icons that topics can have; see tgapi.API.TopicIcons
	Outbox *outbox.Outbox
	Log    *slog.Logger
}

// Icons changes the icons of topics. Safe for concurrent use.
type Icons struct {
	opts IconOptions

	mu     sync.Mutex
	topics map[orchestrator.ConversationID]*topic
	ids    map[string]string // of icons by their emoji; nil before Telegram was asked
}

// topic is one that ductor opened.
type topic struct {
	wants, shows state
	changed      time.Time // when its icon was changed last
	due          bool      // a change is to come
}

// NewIcons makes Icons for the topics that are stored. The topic of a turn that ended with the process before becomes idle unless
// Follow finds it working soon.
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

// Opened takes a topic that was opened.
func (i *Icons) Opened(ctx context.Context, in orchestrator.ConversationID) error {
	if err := i.opts.Store.SaveTopic(ctx, in, string(idle)); err != nil {
		return fmt.Errorf("keep a topic: %w", err)
	}
	i.mu.Lock()
	i.topics[in] = &topic{wants: idle}
	i.dueLocked(in, settles)
	i.mu.Unlock()
	return nil
}

// Follow shows that a turn runs in a topic. It returns nil if ductor did not open the topic.
func (i *Icons) Follow(t orchestrator.Turn) *TopicTurn {
	in := t.Prompt.Conversation
	if !i.set(in, working) {
		return nil
	}
	return &TopicTurn{icons: i, in: in, asks: cli.Asks{}}
}

// Ended takes how a turn ended.
func (i *Icons) Ended(in orchestrator.ConversationID, o orchestrator.Outcome) {
	s := idle
	if o.State == orchestrator.TurnFailed || o.State == orchestrator.TurnInterrupted {
		s = failed
	}
	i.set(in, s)
}

// set has the icon of a topic say something else, and says whether it is a topic that ductor opened.
func (i *Icons) set(in orchestrator.ConversationID, s state) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	t := i.topics[in]
	if t == nil {
		return false
	}
	if t.wants = s; t.wants != t.shows {
		i.dueLocked(in, max(settles, apart-time.Since(t.changed)))
	}
	return true
}

// dueLocked has the icon of a topic be changed after a while, if nothing else does.
func (i *Icons) dueLocked(in orchestrator.ConversationID, after time.Duration) {
	t := i.topics[in]
	if t.due {
		return
	}
	t.due = true
	time.AfterFunc(after, func() {
		i.opts.Outbox.Go(context.Background(), outbox.Call{
			Chat: outbox.ChatOf(in.Chat), Delivery: outbox.Newest, Priority: outbox.Sign, Key: fmt.Sprint("icon/", in.Topic), Idempotent: true,
			Run: func(ctx context.Context) error { return i.change(ctx, in) },
		}, func(err error) { i.done(in, err) })
	})
}

// change has the icon of a topic say what it is to say now.
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
		i.opts.Log.Warn("change the icon of a topic", "chat", in.Chat, "topic", in.Topic, "err", err) // it is not tried again
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

// icon is what a topic is to show; an empty state if it shows that, or if Telegram has no icon for it.
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

// done ends a change, and has one that failed tried again.
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
		i.dueLocked(in, apart)
	}
}

// TopicTurn shows in the icon of a topic whether its turn waits for a user. A nil TopicTurn shows nothing. Its caller serializes the calls.
type TopicTurn struct {
	icons *Icons
	in    orchestrator.ConversationID
	asks  cli.Asks
}

// Observe takes an event of the turn.
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
