package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// UpdateID is the ID of an update. IDs are consecutive numbers.
type UpdateID int64

const (
	updateLife         = 24 * time.Hour
	callbackUpdateLife = 150 * time.Second
	firstUpdate        = UpdateID(700000001)
)

// update is an update that the bot has not acknowledged yet.
type update struct {
	id      UpdateID
	body    string
	expires time.Time
	again   bool // send the update again after the bot has acknowledged it
}

// updateQueue contains the updates that the bot has not acknowledged, and the state of getUpdates.
type updateQueue struct {
	next      UpdateID
	waiting   []update
	allowed   []string // kinds of updates that the bot wants; nil means the default kinds
	webhook   string
	poll      *poll
	lastStart time.Time
	lastOff   int64
	arrived   signal
	upTo      UpdateID // the bot gets no updates with higher IDs; 0 means no limit
	repeat    int      // number of new updates that are sent twice
	reverse   int      // number of responses in which the order of updates will be reversed
}

// poll is a waiting call of getUpdates. If another call of getUpdates arrives, or a webhook is set, kick ends the wait.
type poll struct {
	kicked chan struct{}
	reason string
}

func (p *poll) kick(reason string) {
	p.reason = reason
	close(p.kicked)
}

const otherPoll = "terminated by other getUpdates request; make sure that only one bot instance is running"

func newUpdateQueue() updateQueue { return updateQueue{next: firstUpdate, lastOff: -1} }

// push adds an update for the bot, if the bot has subscribed to updates of this kind. The caller holds mu.
func (s *Server) push(kind string, payload any) { s.pushFor(kind, payload, updateLife) }

func (s *Server) pushFor(kind string, payload any, life time.Duration) {
	if !s.queue.wants(kind) {
		return
	}
	id := s.queue.next
	s.pushRaw(fmt.Sprintf(`{"update_id":%d,%q:%s}`, id, kind, mustJSON(payload)), life)
}

func (s *Server) pushRaw(body string, life time.Duration) UpdateID {
	id := s.queue.next
	s.queue.next++
	again := s.queue.repeat > 0
	if again {
		s.queue.repeat--
	}
	s.queue.waiting = append(s.queue.waiting, update{id, body, s.now().Add(life), again})
	s.queue.arrived.broadcast()
	s.changed.broadcast()
	return id
}

// wants reports whether the bot has subscribed to a kind of update. By default, the bot gets most kinds. A few kinds it
// must request.
func (u *updateQueue) wants(kind string) bool {
	if u.allowed != nil {
		return slices.Contains(u.allowed, kind)
	}
	switch kind {
	case "chat_member", "message_reaction", "message_reaction_count":
		return false
	}
	return true
}

// InjectUpdate adds an update of any kind. payload is the update's JSON. The bot gets the update even if it has not
// subscribed to this kind.
func (s *Server) InjectUpdate(kind, payload string) UpdateID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushRaw(fmt.Sprintf(`{"update_id":%d,%q:%s}`, s.queue.next, kind, payload), updateLife)
}

// InjectRaw adds an update that may be invalid. The function body returns the text of the update with the given ID. The
// response contains this text unchanged, so invalid JSON makes the whole response invalid.
func (s *Server) InjectRaw(body func(UpdateID) string) UpdateID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushRaw(body(s.queue.next), updateLife)
}

// CountFrom sets the ID of the next update. Telegram may change the ID like this after a week without updates.
func (s *Server) CountFrom(id UpdateID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.next = id
}

// PendingUpdates returns how many updates the bot has not acknowledged.
func (s *Server) PendingUpdates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.expire(s.now())
	return len(s.queue.waiting)
}

// AwaitAcknowledged waits until the bot has acknowledged every update.
func (s *Server) AwaitAcknowledged(ctx context.Context) error {
	return s.await(ctx, "every update acknowledged", func() bool {
		s.queue.expire(s.now())
		return len(s.queue.waiting) == 0
	})
}

// AwaitPoll waits until the bot waits for updates in a call of getUpdates. The bot is then running.
func (s *Server) AwaitPoll(ctx context.Context) error {
	return s.await(ctx, "a poll", func() bool { return s.queue.poll != nil })
}

// Hold makes the server hold back new updates. A call of release sends the given number of them. If the bot polls at
// that time, they arrive in one response. release(0) sends all updates and ends the hold.
func (s *Server) Hold() (release func(updates int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.upTo = s.queue.next - 1
	return func(updates int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queue.upTo += UpdateID(updates)
		if updates == 0 {
			s.queue.upTo = 0
		}
		s.queue.arrived.broadcast()
	}
}

// Repeat makes the server send each of the next updates twice, as if Telegram had lost the bot's acknowledgement. If
// updates is not positive, Repeat ends the repetition.
func (s *Server) Repeat(updates int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.repeat = updates
}

// Reverse makes the server reverse the order of the updates in the next answers that contain several updates. If
// answers is not positive, Reverse restores the normal order.
func (s *Server) Reverse(answers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.reverse = answers
}

func (u *updateQueue) visible() int {
	if u.upTo == 0 {
		return len(u.waiting)
	}
	n := 0
	for n < len(u.waiting) && u.waiting[n].id <= u.upTo {
		n++
	}
	return n
}

func (u *updateQueue) expire(now time.Time) {
	u.waiting = slices.DeleteFunc(u.waiting, func(one update) bool { return !now.Before(one.expires) })
}

// acknowledge drops the updates before offset. If offset is -n, it drops all but the n newest updates.
func (u *updateQueue) acknowledge(offset int64) {
	if offset < 0 {
		drop := max(0, int64(len(u.waiting))+offset)
		u.waiting = slices.Clone(u.waiting[drop:])
		return
	}
	var left []update
	for _, one := range u.waiting {
		if int64(one.id) < offset {
			if !one.again {
				continue
			}
			one.again = false
		}
		left = append(left, one)
	}
	u.waiting = left
}

func (u *updateQueue) batch(limit int) rawResult {
	n := min(limit, len(u.waiting))
	bodies := make([]string, n)
	for i, one := range u.waiting[:n] {
		bodies[i] = one.body
	}
	if n > 1 && u.reverse > 0 {
		u.reverse--
		slices.Reverse(bodies)
	}
	return rawResult("[" + strings.Join(bodies, ",") + "]")
}

// getUpdates returns pending updates, or waits for an update. Unlike other methods, it locks mu itself, so that it can
// unlock mu while it waits.
func (s *Server) getUpdates(ctx context.Context, q *request) (any, *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.webhook != "" {
		return nil, conflict("can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
	}
	limit, wait := s.pollTerms(q)
	if s.queue.poll != nil {
		s.queue.poll.kick(otherPoll)
	}
	me := &poll{kicked: make(chan struct{})}
	s.queue.poll = me
	defer func() {
		if s.queue.poll == me {
			s.queue.poll = nil
		}
	}()
	s.queue.acknowledge(q.integer("offset"))
	s.changed.broadcast()
	return s.pollWait(ctx, me, limit, wait)
}

// pollTerms reads limit, timeout and allowed_updates. The server stores allowed_updates, because they also apply to
// later calls.
func (s *Server) pollTerms(q *request) (limit int, wait time.Duration) {
	limit = int(q.integer("limit"))
	if limit < 1 || limit > 100 {
		limit = 100
	}
	wait = min(max(0, time.Duration(q.integer("timeout"))*time.Second), maxPoll)
	var kinds []string
	if text := q.params["allowed_updates"]; text != "" && json.Unmarshal([]byte(text), &kinds) == nil {
		s.queue.allowed = nil
		if len(kinds) > 0 {
			s.queue.allowed = kinds
		}
	}
	if !s.opts.ThrottlePolls {
		return limit, wait
	}
	now, offset := s.now(), q.integer("offset")
	since := now.Sub(s.queue.lastStart)
	if offset == s.queue.lastOff && since < 3*time.Second {
		wait = max(wait, 3*time.Second)
	}
	if offset == s.queue.lastOff && since < time.Second/2 {
		limit = 1
	}
	s.queue.lastOff, s.queue.lastStart = offset, now
	return limit, wait
}

// pollWait returns pending updates, or waits for updates until the time limit is over.
func (s *Server) pollWait(ctx context.Context, me *poll, limit int, wait time.Duration) (any, *Error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := wait <= 0; ; {
		s.queue.expire(s.now())
		if n := min(limit, s.queue.visible()); n > 0 || over {
			return s.queue.batch(n), nil
		}
		arrived := s.queue.arrived.wait()
		s.mu.Unlock()
		select {
		case <-arrived:
		case <-timer.C:
			over = true
		case <-me.kicked:
			s.mu.Lock()
			return nil, conflict(me.reason)
		case <-ctx.Done():
			over = true
		case <-s.base.Done():
			over = true
		}
		s.mu.Lock()
	}
}

// SetWebhook sets a webhook, as if another program had done it. Calls of getUpdates fail until the bot deletes the
// webhook.
func (s *Server) SetWebhook(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.useWebhook(url)
}

func (s *Server) useWebhook(url string) {
	s.queue.webhook = url
	if url != "" && s.queue.poll != nil {
		s.queue.poll.kick("terminated by setWebhook request")
		s.queue.poll = nil
	}
}

func (s *Server) setWebhook(q *request) (any, *Error) {
	s.useWebhook(q.params["url"])
	return true, nil
}

func (s *Server) deleteWebhook(q *request) (any, *Error) {
	s.queue.webhook = ""
	if q.boolean("drop_pending_updates") {
		s.queue.waiting = nil
		s.changed.broadcast()
	}
	return true, nil
}

func (s *Server) getWebhookInfo(*request) (any, *Error) {
	return map[string]any{
		"url": s.queue.webhook, "has_custom_certificate": false, "pending_update_count": len(s.queue.waiting),
	}, nil
}

func (s *Server) pushMembership(c *Chat, by *Person, before, now Membership) {
	if by == nil {
		return
	}
	s.push("my_chat_member", map[string]any{
		"chat": c.wire(), "from": by.wire(), "date": s.now().Unix(),
		"old_chat_member": memberJSON(s.botUser(), before), "new_chat_member": memberJSON(s.botUser(), now),
	})
}
