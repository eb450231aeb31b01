package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// noticeClient is what notices need of a Client.
type noticeClient interface {
	Send(ctx context.Context, m tgapi.Message) (int, error)
}

// noticeJournal is what notices need of a Journal.
type noticeJournal interface {
	PostNotice(ctx context.Context, l orchestrator.Notice) (int64, error)
	PendingNotices(ctx context.Context) ([]orchestrator.Notice, error)
	MoveNotice(ctx context.Context, id int64, state orchestrator.SendState, message int) error
	LostNotices(ctx context.Context) ([]orchestrator.Notice, error)
}

// noticeContent is what a notice's content holds.
type noticeContent struct {
	Text     string          `json:"text"`
	Entities []render.Entity `json:"entities,omitempty"`
	Keyboard tgapi.Keyboard  `json:"keyboard,omitempty"`
	ReplyTo  int             `json:"reply_to,omitempty"`
	Follow   string          `json:"follow,omitempty"` // names who is told which message it became
}

// Notices sends stored notices: whatever must be delivered outside of a card. A notice is sent once; one
// whose outcome is unknown stays so. Notices of one conversation leave in order. Safe for concurrent use.
type Notices struct {
	journal noticeJournal
	client  noticeClient
	outbox  *outbox.Outbox
	log     *slog.Logger
	wake    chan struct{} // capacity 1
	stuck   chan struct{} // capacity 1: a notice did not leave, and nothing that waits for it will say when it can

	followers followers

	mu     sync.Mutex
	flying map[int64]bool // handed to the outbox; false once it has done with the notice
	early  map[string]*earlyNotice
}

// NewNotices makes Notices. Run sends them.
func NewNotices(journal noticeJournal, client noticeClient, outbox *outbox.Outbox, log *slog.Logger) *Notices {
	return &Notices{
		journal: journal, client: client, outbox: outbox, log: log,
		wake: make(chan struct{}, 1), stuck: make(chan struct{}, 1), flying: make(map[int64]bool), followers: newFollowers(),
		early: make(map[string]*earlyNotice),
	}
}

// compose makes a notice of plain text that is to be stored with what caused it. Text beyond what a
// message holds is cut off. replyTo is 0 for none.
func (l *Notices) Compose(id orchestrator.ConversationID, text string, k tgapi.Keyboard, replyTo int) (orchestrator.Notice, error) {
	return noticeOf(id, noticeContent{Text: shortened(text), Keyboard: k, ReplyTo: replyTo})
}

// composeFollowed is compose for a notice whose message is to change: sent is told the message once it is there, unless
// ductor is restarted before. It must not block.
func (l *Notices) ComposeFollowed(id orchestrator.ConversationID, text string, k tgapi.Keyboard, replyTo int, sent func(message int)) (orchestrator.Notice, error) {
	return noticeOf(id, noticeContent{Text: shortened(text), Keyboard: k, ReplyTo: replyTo, Follow: l.followers.add(sent)})
}

func shortened(text string) string {
	return render.Shorten(render.Plain(text), render.MessageLimit).Text
}

func noticeOf(id orchestrator.ConversationID, content noticeContent) (orchestrator.Notice, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return orchestrator.Notice{}, fmt.Errorf("encode a notice: %w", err)
	}
	return orchestrator.Notice{Conversation: id, Content: data, State: orchestrator.Pending}, nil
}

// Notice posts Markdown as one or more notices, as long as it takes.
func (l *Notices) Notice(ctx context.Context, id orchestrator.ConversationID, markdown string) error {
	for _, part := range render.Split(render.Markdown(markdown), render.FullMessage) {
		notice, err := noticeOf(id, noticeContent{Text: part.Text.Text, Entities: part.Text.Entities})
		if err != nil {
			return err
		}
		if _, err := l.journal.PostNotice(ctx, notice); err != nil {
			return fmt.Errorf("post a notice: %w", err)
		}
	}
	l.Wake()
	return nil
}

// Wake says that notices were stored.
func (l *Notices) Wake() { signal(l.wake) }

// signal wakes who waits for c, which has room for one; it does nothing if that one is there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Bounds of the sender.
const (
	maxFlying   = 128             // notices in the outbox at once
	noticeRetry = 5 * time.Second // after the journal or the outbox had no room
	lastCollect = 5 * time.Second
)

// Run sends notices until ctx ends: first those the previous process left, then new ones as they come. What is
// in the outbox then is left to its Drain; what is not stays in the journal. It fails only if the journal
// cannot be read at the start.
func (l *Notices) Run(ctx context.Context) error {
	lost, err := l.journal.LostNotices(ctx)
	if err != nil {
		return fmt.Errorf("look for lost notices: %w", err)
	}
	for _, notice := range lost {
		l.log.Warn("a message was on its way when ductor ended; it is not sent again, since it may have arrived",
			"notice", notice.ID, "chat", notice.Conversation.Chat, "topic", notice.Conversation.Topic)
	}
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-l.wake:
		case <-retry.C:
		case <-l.stuck:
			retry.Reset(noticeRetry)
			continue
		case <-ctx.Done():
			// What the last updates caused may still be on its way into the outbox.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCollect)
			defer cancel()
			if err := l.collect(last); err != nil {
				l.log.Warn("collect notices", "err", err)
			}
			return nil
		}
		if err := l.collect(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("collect notices", "err", err)
			retry.Reset(noticeRetry)
		}
	}
}

// collect hands pending notices to the outbox.
func (l *Notices) collect(ctx context.Context) error {
	l.land()
	pending, err := l.journal.PendingNotices(ctx)
	if err != nil {
		return fmt.Errorf("list notices: %w", err)
	}
	for _, notice := range pending {
		d := &delivery{notices: l, notice: notice, to: notice.Conversation}
		err := json.Unmarshal(notice.Content, &d.content)
		if e := l.earlyOf(d.content.Follow); e != nil { // it is in the outbox already, and counts for nothing there
			l.fly(notice.ID)
			e.known(notice.ID)
			continue
		}
		if !l.claim(notice.ID) {
			continue
		}
		if err != nil {
			l.log.Error("a notice cannot be read", "notice", notice.ID, "err", err)
			d.end(l.journal.MoveNotice(ctx, notice.ID, orchestrator.Failed, 0))
			continue
		}
		d.post()
	}
	return nil
}

// land forgets the notices that the outbox has done with. It comes before the journal is read: one that
// leaves while its list of the pending is on its way here still stands in that list, and must not be claimed.
func (l *Notices) land() {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.flying, func(_ int64, flies bool) bool { return !flies })
}

// claim takes a notice for sending; false if it is being sent, or was since land, or too many are.
func (l *Notices) claim(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.flying[id]; known || len(l.flying) >= maxFlying {
		return false
	}
	l.flying[id] = true
	return true
}

// fly notes that a notice is in the outbox.
func (l *Notices) fly(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying[id] = true
}

// delivery is one notice on its way. Its steps follow each other, so it needs no lock.
type delivery struct {
	notices *Notices
	notice  orchestrator.Notice
	content noticeContent
	to      orchestrator.ConversationID
	plain   bool         // without formatting
	early   *earlyNotice // of one that leaves before it is stored
}

func (d *delivery) post() {
	key, priority := "notices/"+string(d.notice.Conversation.Key()), outbox.Awaited
	if d.early != nil { // it goes before all others
		key, priority = "notices/"+d.early.name, outbox.Urgent
	}
	// The notice outlives whoever woke us; the outbox ends its calls when it is drained.
	d.notices.outbox.Go(context.Background(), outbox.Call{Chat: outbox.ChatOf(d.to.Chat), Priority: priority, Key: key, Run: d.send}, d.end)
}

// send makes one try. An error means that the notice did not leave.
func (d *delivery) send(ctx context.Context) error {
	if d.early != nil {
		if err := d.early.begin(ctx, d); err != nil {
			return err
		}
	}
	if err := d.move(ctx, orchestrator.Sending, 0); err != nil {
		return err
	}
	m := tgapi.Message{
		To: d.to, Text: render.Text{Text: d.content.Text, Entities: d.content.Entities},
		Keyboard: d.content.Keyboard, ReplyTo: d.content.ReplyTo,
	}
	if d.plain {
		m.Text.Entities = nil
	}
	id, err := d.notices.client.Send(ctx, m)
	keep := context.WithoutCancel(ctx)
	switch f := tgapi.FaultOf(err); {
	case err == nil:
		d.notices.followers.tell(d.content.Follow, id)
		return d.move(keep, orchestrator.Sent, id)
	case f.Kind == tgapi.UnknownFault:
		d.notices.log.Warn("a message may or may not have arrived; it is not sent again", "notice", d.notice.ID, "err", err)
		return d.move(keep, orchestrator.Unknown, 0)
	case f.Kind == tgapi.TopicGone && d.to.Topic != 0:
		d.to.Topic = 0
	case (f.Kind == tgapi.BadRequest || f.Kind == tgapi.TooLong) && !d.plain:
		d.plain = true
	case f.Kind == tgapi.RateLimited, f.Kind == tgapi.ServerFault, f.Kind == tgapi.NotSent, f.Kind == tgapi.Cancelled, f.Kind == tgapi.Unauthorized,
		f.Kind == tgapi.Conflict:
		return errors.Join(err, d.move(keep, orchestrator.Pending, 0))
	default:
		d.notices.log.Warn("a message was refused for good", "notice", d.notice.ID, "chat", d.to.Chat, "err", err)
		return d.move(keep, orchestrator.Failed, 0)
	}
	return errors.Join(outbox.ErrOtherForm, d.move(keep, orchestrator.Pending, 0))
}

func (d *delivery) move(ctx context.Context, state orchestrator.SendState, message int) error {
	if d.notice.ID == 0 { // it left before it was stored
		return d.early.moved(ctx, d, state)
	}
	if err := d.notices.journal.MoveNotice(ctx, d.notice.ID, state, message); err != nil {
		return fmt.Errorf("record a notice: %w", err)
	}
	return nil
}

// end is called when the outbox has done with the notice.
func (d *delivery) end(err error) {
	l := d.notices
	l.mu.Lock()
	if d.early != nil {
		delete(l.early, d.early.name)
	}
	if d.notice.ID != 0 {
		l.flying[d.notice.ID] = false
	}
	l.mu.Unlock()
	if err == nil {
		l.Wake() // there is room for another
		return
	}
	// It stays in the journal as it is, and is taken up soon, or after a restart.
	l.log.Warn("a notice waits", "notice", d.notice.ID, "err", err)
	signal(l.stuck)
}

var (
	_ updates.Notices = (*Notices)(nil)
	_ earlyNotices    = (*Notices)(nil)
)
