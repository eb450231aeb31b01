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
	Timeout  time.Duration             // how long Telegram may hold a getUpdates request
	Owner    orchestrator.PersonID     // user to notify if the disk has a problem; 0 for none
	Conflict func(ctx context.Context) // called if another program polls with the same bot token
	// Polled is called after each poll with the poll's error and the pause before the next poll. It must not block. It
	// may be nil.
	Polled func(err error, wait time.Duration)
	Log    *slog.Logger
	Now    func() time.Time
}

// NewPoller returns a Poller that passes updates to o.Router.
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

// Poller receives updates from Telegram by long polling. It stores each update before it acknowledges the update to
// Telegram, so that a crash loses no update.
type Poller struct {
	api        *tgapi.API
	journal    orchestrator.Inbox
	dispatch   func(ctx context.Context, updates []orchestrator.Update)
	strip      func(orchestrator.Update) orchestrator.Update // prepares an update for storing; see gate.strip
	guard      *diskGuard
	unfinished *unfinished
	report     reports
	timeout    time.Duration // how long Telegram may hold a getUpdates request
	backoff    backoff
	log        *slog.Logger

	offset int64 // parameter "offset" of the next getUpdates request; 0: request all unacknowledged updates
	last   last
}

type last struct {
	answered  bool
	conflicts int // number of consecutive conflicts with another poller
}

type reports struct {
	conflict func(ctx context.Context)
	polled   func(err error, wait time.Duration)
}

// PollMost returns the maximum duration of a poll with the given timeout.
func PollMost(timeout time.Duration) time.Duration { return timeout + pollGrace }

const (
	pollLimit   = 100
	pollGrace   = 15 * time.Second // time for the network in addition to the timeout
	pendingPage = 200
	// conflictRest is the pause after a conflict with another poller, in addition to the timeout of a poll. A shorter
	// pause would make the two pollers interrupt each other again and again.
	conflictRest = 10 * time.Second
)

func allowedUpdates() []string {
	return []string{"message", "edited_message", "callback_query", "stopped_message_generation"}
}

// TakeUp dispatches the stored updates that the previous process did not finish. Call it once, before Run.
func (p *Poller) TakeUp(ctx context.Context) error {
	return p.takeUp(ctx, func(orchestrator.Update) bool { return true })
}

// Run polls until ctx is done. It returns nil if ctx is done. Otherwise it returns ErrToken,
// orchestrator.ErrDiskFailed, orchestrator.ErrDamaged, or an error from reading stored updates.
func (p *Poller) Run(ctx context.Context) error {
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

// next makes one poll, and returns the pause before the next call. If the disk is full, it calls awaitRoom and makes no
// other poll. If the disk has failed or the database is damaged, it returns an error.
func (p *Poller) next(ctx context.Context) (wait time.Duration, fatal error) {
	state, changed := p.journal.Disk()
	switch state {
	case orchestrator.DiskFailed:
		p.guard.enter(ctx, state)
		return 0, orchestrator.ErrDiskFailed
	case orchestrator.DiskDamaged:
		p.log.Error("the database is damaged; ductor starts again, and moves it aside")
		return 0, orchestrator.ErrDamaged
	case orchestrator.DiskFull:
		return p.awaitRoom(ctx)
	}
	p.guard.enter(ctx, state)
	if err := p.takeUpUnfinished(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(changed, cancel)() // cancel the poll if the disk fails
	return p.pollOnce(ctx)
}

// awaitRoom checks whether a full disk has space again. If the disk is still full, awaitRoom reads new updates only to
// notify their senders of the problem. It does not acknowledge these updates.
func (p *Poller) awaitRoom(ctx context.Context) (wait time.Duration, fatal error) {
	if p.guard.hasRoom(ctx) {
		return 0, nil
	}
	p.guard.enter(ctx, orchestrator.DiskFull)
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

// takeUpUnfinished repeats the handling of updates that could not be marked as handled because the disk was full.
func (p *Poller) takeUpUnfinished(ctx context.Context) error {
	ids := p.unfinished.take()
	if len(ids) == 0 {
		return nil
	}
	return p.takeUp(ctx, func(u orchestrator.Update) bool { return slices.Contains(ids, u.ID) })
}

// takeUp handles, in order, the stored updates that are not marked as handled and for which wanted returns true.
func (p *Poller) takeUp(ctx context.Context, wanted func(orchestrator.Update) bool) error {
	return eachPending(ctx, p.journal, func(updates []orchestrator.Update) {
		updates = slices.DeleteFunc(updates, func(u orchestrator.Update) bool { return !wanted(u) })
		p.log.Info("taking up updates that were not dealt with", "count", len(updates))
		p.dispatch(ctx, updates)
	})
}

// eachPending calls f with pages of the stored updates that are not handled yet, in order. It returns nil if ctx is
// done.
func eachPending(ctx context.Context, journal orchestrator.Inbox, f func([]orchestrator.Update)) error {
	after := int64(0)
	for {
		updates, err := journal.PendingUpdates(ctx, after, pendingPage)
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
		f(updates)
	}
}

func (p *Poller) pollOnce(ctx context.Context) (wait time.Duration, fatal error) {
	timeout := p.timeout
	if !p.last.answered && p.last.conflicts == 0 {
		// Telegram has not answered the last poll, or this is the first one. With timeout 0, Telegram answers at once,
		// which shows that Telegram is reachable. After a conflict, keep the usual timeout, because a short poll could
		// succeed although another program polls, too.
		timeout = 0
	}
	updates, err := p.poll(ctx, timeout)
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
		// Telegram has no more updates, so the next poll need not acknowledge any. Offset 0 requests updates with any
		// ID. After a week without updates, Telegram may continue with a random ID that is lower than the old offset.
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

// storeAndDispatch stores updates and dispatches the new ones. Then it advances the offset, so that the next poll
// acknowledges the updates. After a crash or a lost response, Telegram sends the same updates again. The flush to disk
// comes after the dispatch, so that handlers can start meanwhile. Anything that the handlers write reaches the disk
// after the updates.
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

// poll requests updates from Telegram. If there are no updates, Telegram answers when an update arrives, or after the
// timeout. poll logs and skips updates whose ID it cannot read.
func (p *Poller) poll(ctx context.Context, timeout time.Duration) ([]orchestrator.Update, error) {
	ctx, cancel := context.WithTimeout(ctx, PollMost(timeout))
	defer cancel()
	var raw []json.RawMessage
	err := p.api.Call(ctx, "getUpdates", map[string]any{
		"offset": p.offset, "limit": pollLimit, "timeout": int(timeout.Seconds()), "allowed_updates": allowedUpdates(),
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

// trouble handles an error of a poll. It returns the pause before the next poll, or an error that ends the poller.
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
	// Report only the second conflict in a row. The last poll of the previous ductor process can cause a first
	// conflict.
	if p.last.conflicts == 2 {
		p.report.conflict(ctx)
	}
	return wait
}
