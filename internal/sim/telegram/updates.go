package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// UpdateID identifies updates. Each is one higher than the previous one.
type UpdateID int64

const (
	updateLife         = 24 * time.Hour
	callbackUpdateLife = 150 * time.Second
	firstUpdate        = UpdateID(700000001)
)

// update is an update that the bot has not acknowledged.
type update struct {
	id      UpdateID
	body    string
	expires time.Time
	again   bool // deliver it again after the acknowledgement
}

// updateQueue contains the updates that the bot has not acknowledged.
type updateQueue struct {
	next      UpdateID
	waiting   []update
	allowed   []string // nil: the default kinds
	webhook   string
	poll      *poll
	lastStart time.Time
	lastOff   int64
	arrived   signal
	upTo      UpdateID // polls get no later updates; 0 means no limit
	repeat    int      // number of next updates to deliver twice
	reverse   int      // number of next responses with several updates to reverse
}

// poll is a waiting getUpdates call. Another call or a webhook ends it, and sets reason before it closes kicked.
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

// push queues an update for the bot, if it wants the kind. The caller holds mu.
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

// wants applies allowed_updates. The default is all kinds except those that a bot must request.
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

// InjectUpdate queues an update of any kind with this JSON as its content, regardless of allowed_updates.
func (s *Server) InjectUpdate(kind, payload string) UpdateID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushRaw(fmt.Sprintf(`{"update_id":%d,%q:%s}`, s.queue.next, kind, payload), updateLife)
}

// InjectRaw queues the text that body returns for the id of the next update, to test how a client handles invalid
// updates. The response contains the text unchanged, so invalid JSON breaks the whole batch.
func (s *Server) InjectRaw(body func(UpdateID) string) UpdateID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushRaw(body(s.queue.next), updateLife)
}

// CountFrom sets the id of the next update, as Telegram does after a week without updates.
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

// AwaitPoll waits until a getUpdates call waits for updates, so the bot is running.
func (s *Server) AwaitPoll(ctx context.Context) error {
	return s.await(ctx, "a poll", func() bool { return s.queue.poll != nil })
}

// Hold withholds updates from the bot. Each call of release delivers the given number of updates, in one response if
// the bot polls in time. release(0) ends the hold.
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

// Repeat delivers each of the next updates again after it was acknowledged, as if Telegram lost the acknowledgement.
// -1 ends this.
func (s *Server) Repeat(updates int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.repeat = updates
}

// Reverse delivers the updates of the next responses in reverse order. It counts only responses with several updates.
// -1 ends this.
func (s *Server) Reverse(answers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.reverse = answers
}

// visible counts the updates that a poll may get.
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

// acknowledge drops the updates that offset confirms. A negative offset keeps only that number of the newest updates.
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

// getUpdates implements the long poll. It takes the lock itself, because it must not hold the lock while it waits.
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

// pollTerms reads limit, timeout and allowed_updates. The server remembers allowed_updates for later polls.
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

// pollWait returns the first pending updates, or none after wait.
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

// SetWebhook acts as if someone set a webhook: polls fail until the bot deletes it.
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
