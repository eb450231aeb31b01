package updates

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"ductor/internal/growstack"
	"ductor/orchestrator"
)

// class determines which other tasks of its conversation a task may overtake.
type class int

// Classes of tasks, the most urgent first.
//   - Urgent tasks (aborts) do not wait, except if the abort would stop nothing.
//   - Control tasks (commands, buttons) overtake content that waits for the network, but no other content: a "/new"
//     that was sent after a prompt takes effect after that prompt.
//   - Content (prompts) is handled in order, and after every command that was sent before it.
const (
	classUrgent class = iota
	classControl
	classContent
	classes
)

// queueBounds limits the waiting tasks of each class in one conversation.
var queueBounds = [classes]int{8, 32, 128}

// task is the work for one update.
type task struct {
	seq     int64 // id of its first update, so that a task keeps its position if ductor handles it again
	class   class
	conv    orchestrator.ConversationID
	updates []int64
	content *Message                                     // for content only
	do      func(ctx context.Context, q *queue, t *task) // for urgent and control tasks only
	dropped bool                                         // an abort removed the task and took over its updates
	stop    context.CancelFunc                           // cancels content that waits for the network
}

// queues runs the tasks of all conversations: in order within a conversation, in parallel across conversations.
// Goroutines exist only while there is work, at most one per class and conversation.
type queues struct {
	content  func(ctx context.Context, q *queue, t *task) // runs a content task and the tasks merged into it
	broke    func(t *task)                                // notifies the user that a task panicked
	log      *slog.Logger
	patience time.Duration // timeout of control and urgent tasks

	life          context.Context // context of tasks; cancelled if stop runs out of time
	end           context.CancelFunc
	background    context.Context // context of other work; cancelled when stop begins
	endBackground context.CancelFunc
	wg            sync.WaitGroup

	mu             sync.Mutex
	byConversation map[orchestrator.ConversationID]*queue
}

// pace is the state of a queue's active content.
type pace int

const (
	promptly  pace = iota // it runs to its end
	gathering             // it waits for further parts; a command ends this wait and runs after the content
	slowly                // it waits for the network, and commands overtake it
)

// queue contains the tasks of one conversation. The lock of queues guards its fields.
type queue struct {
	all     *queues
	id      orchestrator.ConversationID
	waiting [classes][]*task
	active  [classes]*task
	worker  [classes]bool
	pace    pace          // of the active content
	full    [classes]bool // the user was notified that the queue is full; reset when there is room
	changed chan struct{} // closed and replaced when one of the fields above changes
}

func newQueues(log *slog.Logger, patience time.Duration) *queues {
	life, end := context.WithCancel(context.Background())
	side, endBeside := context.WithCancel(life)
	return &queues{
		log: log, patience: patience, life: life, end: end, background: side, endBackground: endBeside,
		byConversation: make(map[orchestrator.ConversationID]*queue),
	}
}

// closed reports whether stop has begun. The caller must hold the lock.
func (k *queues) closed() bool { return k.background.Err() != nil }

// admission is the result of enqueue.
type admission int

const (
	admitted admission = iota
	crowded            // no room, and the user was not notified yet
	silenced           // no room, and the user was notified
	stopping           // ductor is stopping, so the task stays in the journal
)

// enqueue appends t to its queue. It never blocks.
func (k *queues) enqueue(t *task) admission {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed() {
		return stopping
	}
	q := k.byConversation[t.conv]
	if q == nil {
		q = &queue{all: k, id: t.conv, changed: make(chan struct{})}
		k.byConversation[t.conv] = q
	}
	if len(q.waiting[t.class]) >= queueBounds[t.class] {
		if q.full[t.class] {
			return silenced
		}
		q.full[t.class] = true
		return crowded
	}
	t.seq = t.updates[0]
	q.insert(t)
	return admitted
}

// behindCommand reports whether a new task would wait for a command or a button.
func (k *queues) behindCommand(in orchestrator.ConversationID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.byConversation[in]
	return q != nil && (q.active[classControl] != nil || len(q.waiting[classControl]) > 0)
}

// becomeContent turns an active task into content, at the same position.
func (q *queue) becomeContent(t *task) {
	k := q.all
	k.mu.Lock()
	defer k.mu.Unlock()
	q.insert(&task{seq: t.seq, class: classContent, conv: t.conv, updates: t.updates, content: t.content})
}

// insert adds a task at its position. The caller holds the lock.
func (q *queue) insert(t *task) {
	waiting := q.waiting[t.class]
	i, _ := slices.BinarySearchFunc(waiting, t.seq, func(o *task, seq int64) int { return cmp.Compare(o.seq, seq) })
	q.waiting[t.class] = slices.Insert(waiting, i, t)
	q.wake(t.class)
}

// wake starts the class's worker if it has none, and wakes all waiting goroutines. The caller must hold the lock.
func (q *queue) wake(c class) {
	if !q.worker[c] && !q.all.closed() {
		q.worker[c] = true
		q.all.wg.Add(1)
		go q.work(c)
	}
	q.touch()
}

func (q *queue) touch() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) work(c class) {
	defer q.all.wg.Done()
	growstack.Grow()
	for {
		t := q.take(c)
		if t == nil {
			return
		}
		q.run(t)
		q.release(c)
	}
}

// take waits until the first task of the class may run, and makes it active. It returns nil if no task is left, or if
// ductor is stopping.
func (q *queue) take(c class) *task {
	k := q.all
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		if len(q.waiting[c]) == 0 || k.closed() {
			q.worker[c] = false
			q.retire()
			q.touch()
			return nil
		}
		if t := q.waiting[c][0]; q.ready(t) {
			q.waiting[c] = slices.Delete(q.waiting[c], 0, 1)
			q.active[c], q.full[c] = t, false
			q.touch()
			return t
		}
		q.await(context.Background()) // this ends, because the awaited task is active and has a deadline
	}
}

// ready reports whether no earlier task prevents t from running.
func (q *queue) ready(t *task) bool {
	switch t.class {
	case classUrgent:
		return true
	case classControl:
		return !q.before(classUrgent, t.seq) && (q.pace == slowly || !q.before(classContent, t.seq))
	default:
		return !q.before(classUrgent, t.seq) && !q.before(classControl, t.seq)
	}
}

// before reports whether an unfinished task of class c is older than seq.
func (q *queue) before(c class, seq int64) bool {
	if a := q.active[c]; a != nil && a.seq < seq {
		return true
	}
	return len(q.waiting[c]) > 0 && q.waiting[c][0].seq < seq
}

// await waits until the queue changes. The caller must hold the lock, which await releases while it waits. It returns
// false if ctx is done.
func (q *queue) await(ctx context.Context) bool {
	changed := q.changed
	q.all.mu.Unlock()
	defer q.all.mu.Lock()
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

// awaitBefore waits until all tasks of class c that came before t are finished, or ctx is done.
func (q *queue) awaitBefore(ctx context.Context, c class, t *task) {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	for q.before(c, t.seq) && q.await(ctx) {
	}
}

// retire removes the queue if it has neither workers nor tasks. The caller holds the lock.
func (q *queue) retire() {
	for c := range classes {
		if q.worker[c] || len(q.waiting[c]) > 0 {
			return
		}
	}
	delete(q.all.byConversation, q.id)
}

func (q *queue) release(c class) {
	k := q.all
	k.mu.Lock()
	defer k.mu.Unlock()
	q.active[c] = nil
	if c == classContent {
		q.pace = promptly
	}
	q.touch()
}

// run runs one task. A panic ends only the task.
func (q *queue) run(t *task) {
	defer func() {
		if p := recover(); p != nil {
			q.all.log.Error("handler panicked", "updates", t.updates, "panic", p, "stack", string(debug.Stack()))
			q.all.broke(t)
		}
	}()
	if t.class == classContent {
		ctx, cancel := context.WithCancel(q.all.life)
		defer cancel()
		q.all.mu.Lock()
		t.stop = cancel
		q.all.mu.Unlock()
		q.all.content(ctx, q, t)
		return
	}
	ctx, cancel := context.WithTimeout(q.all.life, q.all.patience)
	defer cancel()
	t.do(ctx, q, t)
}

// spawn runs f in a new goroutine, so that no task waits for it. The ctx of f ends when ductor stops.
func (k *queues) spawn(f func(ctx context.Context)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed() {
		k.wg.Go(func() { f(k.background) })
	}
}

// stop starts no further tasks, and cancels tasks that wait for the network. It waits for the other tasks until ctx
// is done, and then cancels them. Unfinished work stays in the journal.
func (k *queues) stop(ctx context.Context) {
	k.mu.Lock()
	k.endBackground()
	for _, q := range k.byConversation {
		if t := q.active[classContent]; t != nil && q.pace != promptly && t.stop != nil {
			t.stop()
		}
		q.touch()
	}
	k.mu.Unlock()
	done := make(chan struct{})
	go func() {
		k.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		k.end()
		<-done
	}
	k.end()
}
