package updates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// PollerOptions configures a Poller.
type PollerOptions struct {
	API      *tgapi.API
	Journal  orchestrator.Inbox
	Router   *Router
	Feedback Feedback
	Timeout  time.Duration             // timeout of a long poll
	Owner    orchestrator.PersonID     // user to notify of problems with the disk; 0 for none
	Conflict func(ctx context.Context) // called once each time another program starts polling with the bot's token
	// Polled gets the result of each poll and the wait before the next one. It must not block. It may be nil.
	Polled func(err error, wait time.Duration)
	Log    *slog.Logger
	Now    func() time.Time
}

// NewPoller returns a Poller that passes updates to a Router.
func NewPoller(o PollerOptions) *Poller {
	if o.Polled == nil {
		o.Polled = func(error, time.Duration) {}
	}
	return &Poller{
		api: o.API, journal: o.Journal, dispatch: o.Router.Dispatch, strip: o.Router.gate.strip,
		unfinished: o.Router.finisher.unfinished,
		guard: &diskGuard{
			journal: o.Journal, concerns: o.Router.concerns, say: o.Feedback.Say, owner: o.Owner, now: o.Now,
			lang: o.Router.lang, log: o.Log,
		},
		report: reports{o.Conflict, o.Polled}, timeout: o.Timeout, backoff: backoff{jitter: jitter}, log: o.Log,
	}
}

// Poller receives updates from Telegram. It stores each update in the journal before the call that acknowledges it,
// so no update is lost if ductor dies.
type Poller struct {
	api        *tgapi.API
	journal    orchestrator.Inbox
	dispatch   func(ctx context.Context, updates []orchestrator.Update)
	strip      func(orchestrator.Update) orchestrator.Update // reduces a stranger's update to its id
	guard      *diskGuard
	unfinished *unfinished
	report     reports
	timeout    time.Duration // timeout of a long poll
	backoff    backoff
	log        *slog.Logger

	offset int64 // offset of the next poll; 0 requests all updates that are not acknowledged
	last   last
}

// last describes the last polls.
type last struct {
	answered  bool
	conflicts int // consecutive conflicts
}

// reports contains the callbacks of PollerOptions.
type reports struct {
	conflict func(ctx context.Context)
	polled   func(err error, wait time.Duration)
}

// PollMost returns the maximum duration of a poll with this timeout.
func PollMost(timeout time.Duration) time.Duration { return timeout + pollGrace }

const (
	pollLimit   = 100
	pollGrace   = 15 * time.Second // time for the network, in addition to the timeout
	pendingPage = 200
	// conflictRest is added to the longest possible poll of another poller. With a shorter pause, the two pollers
	// would interrupt each other again and again.
	conflictRest = 10 * time.Second
)

// allowedUpdates returns the kinds of updates that the bot requests.
func allowedUpdates() []string {
	return []string{"message", "edited_message", "callback_query", "stopped_message_generation"}
}

// Run handles the updates that the previous process left in the journal, then polls until ctx is done and returns nil.
// It returns ErrToken, orchestrator.ErrDiskFailed, orchestrator.ErrDamaged, or an error of reading the journal.
func (p *Poller) Run(ctx context.Context) error {
	if err := p.takeUp(ctx, anyUpdate); err != nil {
		return err
	}
	for ctx.Err() == nil {
		wait, err := p.next(ctx)
		if err != nil {
			return err
		}
		if wait > 0 && pause(ctx, wait) != nil {
			return nil
		}
	}
	return nil
}

// next makes one poll, unless the disk has a problem. It returns the wait before the next poll.
func (p *Poller) next(ctx context.Context) (wait time.Duration, fatal error) {
	state, changed := p.journal.Disk()
	switch state {
	case orchestrator.DiskFailed:
		p.guard.enter(ctx, state, nil)
		return 0, orchestrator.ErrDiskFailed
	case orchestrator.DiskDamaged:
		p.log.Error("the database is damaged; ductor starts again, and moves it aside")
		return 0, orchestrator.ErrDamaged
	case orchestrator.DiskFull:
		return p.awaitRoom(ctx)
	}
	p.guard.enter(ctx, state, nil)
	if err := p.takeUpUnfinished(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(changed, cancel)() // a problem with the disk ends a poll
	return p.pollOnce(ctx)
}

// awaitRoom checks whether a full disk has room again. If not, it reads new updates without acknowledging them, and
// tells their senders why they get no answer.
func (p *Poller) awaitRoom(ctx context.Context) (wait time.Duration, fatal error) {
	err := p.journal.RetryDisk(ctx)
	if state, _ := p.journal.Disk(); err == nil || state != orchestrator.DiskFull {
		return 0, nil
	}
	p.guard.enter(ctx, orchestrator.DiskFull, err)
	updates, err := p.poll(ctx, 0)
	if ctx.Err() != nil {
		return 0, nil
	}
	if err != nil {
		wait, fatal = p.trouble(ctx, err)
		wait = max(wait, diskRetry)
		p.report.polled(err, wait)
		return wait, fatal
	}
	p.report.polled(nil, diskRetry)
	p.guard.notifySenders(updates)
	return diskRetry, nil
}

// takeUpUnfinished dispatches updates again that could not be marked as handled while the disk was full.
func (p *Poller) takeUpUnfinished(ctx context.Context) error {
	ids := p.unfinished.take()
	if len(ids) == 0 {
		return nil
	}
	return p.takeUp(ctx, func(u orchestrator.Update) bool { return slices.Contains(ids, u.ID) })
}

func anyUpdate(orchestrator.Update) bool { return true }

// takeUp dispatches the unhandled updates of the journal for which wanted returns true, in order.
func (p *Poller) takeUp(ctx context.Context, wanted func(orchestrator.Update) bool) error {
	after := int64(0)
	for {
		updates, err := p.journal.PendingUpdates(ctx, after, pendingPage)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read pending updates: %w", err)
		}
		if len(updates) == 0 {
			return nil
		}
		after = updates[len(updates)-1].ID
		updates = slices.DeleteFunc(updates, func(u orchestrator.Update) bool { return !wanted(u) })
		p.log.Info("taking up updates that were not dealt with", "count", len(updates))
		p.dispatch(ctx, updates)
	}
}

// pollOnce makes one poll. It returns the wait before the next poll.
func (p *Poller) pollOnce(ctx context.Context) (wait time.Duration, fatal error) {
	patience := p.timeout
	if !p.last.answered && p.last.conflicts == 0 { // a short poll meets no other poller
		patience = 0 // an immediate answer shows that Telegram is reachable
	}
	updates, err := p.poll(ctx, patience)
	if ctx.Err() != nil {
		return 0, nil
	}
	p.last.answered = err == nil
	if err != nil {
		wait, fatal = p.trouble(ctx, err)
		p.report.polled(err, wait)
		return wait, fatal
	}
	p.report.polled(nil, 0)
	p.last.conflicts = 0
	if len(updates) == 0 {
		// All updates are acknowledged. From now on, 0 requests the same updates as the offset, and also updates with
		// lower ids: after a quiet week, Telegram may restart its numbering.
		p.offset = 0
	} else if err := p.storeAndDispatch(ctx, updates); err != nil {
		if ctx.Err() != nil || ofDisk(err) {
			return 0, nil
		}
		wait := p.backoff.next()
		p.log.Error("updates could not be journaled, so they are not acknowledged", "count", len(updates), "err", err)
		return wait, nil
	}
	if p.backoff.tries > 0 {
		p.log.Info("polling works again", "failures", p.backoff.tries)
		p.backoff.tries = 0
	}
	return 0, nil
}

// storeAndDispatch stores updates in the journal, dispatches the new ones and moves the offset. Telegram sends
// unacknowledged updates again after a crash or a lost answer. storeAndDispatch waits for the disk at its end, when
// the handlers have begun; their writes reach the disk after the update.
func (p *Poller) storeAndDispatch(ctx context.Context, updates []orchestrator.Update) error {
	newest := updates[0].ID
	kept := make([]orchestrator.Update, 0, len(updates))
	for _, u := range updates {
		newest = max(newest, u.ID)
		kept = append(kept, p.strip(u))
	}
	fresh, err := p.journal.AppendUpdates(ctx, kept)
	if err != nil {
		return fmt.Errorf("append updates: %w", err)
	}
	if len(fresh) > 0 {
		p.dispatch(ctx, fresh)
	}
	if err := p.journal.Flush(ctx); err != nil {
		return fmt.Errorf("flush updates: %w", err)
	}
	p.offset = newest + 1
	return nil
}

// poll requests updates from Telegram, and waits for them for at most patience. It logs and drops updates without a
// readable id.
func (p *Poller) poll(ctx context.Context, patience time.Duration) ([]orchestrator.Update, error) {
	ctx, cancel := context.WithTimeout(ctx, PollMost(patience))
	defer cancel()
	var raw []json.RawMessage
	err := p.api.Call(ctx, "getUpdates", map[string]any{
		"offset": p.offset, "limit": pollLimit, "timeout": int(patience.Seconds()), "allowed_updates": allowedUpdates(),
	}, &raw)
	if err != nil {
		return nil, err
	}
	updates := make([]orchestrator.Update, 0, len(raw))
	for _, r := range raw {
		var u struct {
			ID int64 `json:"update_id"`
		}
		if err := json.Unmarshal(r, &u); err != nil || u.ID == 0 {
			p.log.Error("an update without an id was passed over", "bytes", len(r))
			continue
		}
		updates = append(updates, orchestrator.Update{ID: u.ID, Raw: r})
	}
	if len(raw) > 0 && len(updates) == 0 {
		return nil, errors.New("getUpdates: no update of the answer has an id")
	}
	return updates, nil
}

// trouble decides how to continue after a failed poll.
func (p *Poller) trouble(ctx context.Context, err error) (wait time.Duration, fatal error) {
	if tgapi.TokenRefused(err) {
		return 0, ErrToken
	}
	var no *tgapi.AnswerError
	if errors.As(err, &no) {
		switch no.Code {
		case http.StatusConflict:
			return p.conflicted(ctx, no), nil
		case http.StatusTooManyRequests:
			p.log.Warn("Telegram asks to poll less often", "retry_after", no.RetryAfter)
			return max(no.RetryAfter, backoffBase), nil
		}
	}
	wait = p.backoff.next()
	p.log.Log(ctx, p.backoff.level(), "polling failed", "err", err, "failures", p.backoff.tries, "again_in", wait)
	return wait, nil
}

func (p *Poller) conflicted(ctx context.Context, no *tgapi.AnswerError) time.Duration {
	p.last.conflicts++
	if strings.Contains(no.Description, "webhook") {
		p.log.Warn("a webhook is set for this bot; it is removed, since ductor polls")
		if err := RemoveWebhook(ctx, p.api); err != nil {
			p.log.Warn("remove webhook", "err", err)
		}
		return p.backoff.jitter(backoffBase)
	}
	wait := p.timeout + conflictRest + p.backoff.jitter(backoffBase)
	p.log.Error("another program polls with the same bot token; stop it, or give ductor a token of its own",
		"again_in", wait)
	// A single conflict may come from the last poll of a process that this one replaced.
	if p.last.conflicts == 2 {
		p.report.conflict(ctx)
	}
	return wait
}
