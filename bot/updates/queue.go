package updates

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"ductor/internal/growstack"
	"ductor/orchestrator"
)

// class is the priority of a task within its conversation.
type class int

// Classes of tasks, the most urgent first:
//   - Urgent tasks (aborts) run immediately. They wait for earlier commands only if no turn is running.
//   - Control tasks (commands and buttons) wait for earlier prompts, so that a "/new" takes effect after the prompt
//     that was sent before it. But they do not wait while the files of such a prompt are downloaded.
//   - Content tasks (prompts) run in order, and after every command that was sent before them.
const (
	classUrgent class = iota
	classControl
	classContent
	classes
)

// queueBounds is the maximum number of waiting tasks of each class in one conversation.
var queueBounds = [classes]int{8, 32, 128}

// task is the work for one update, or for several merged updates.
type task struct {
	seq     int64 // position in the queue: the ID of the first update, so that the next process uses the same order
	class   class
	conv    orchestrator.ConversationID
	updates []int64
	content *Message                                     // prompt of the task; only for classContent
	do      func(ctx context.Context, q *queue, t *task) // runs the task; not used for classContent
	dropped bool                                         // an abort removed the task and marks the updates as handled
	stop    context.CancelFunc                           // cancels a task of classContent; set when the task starts
}

// queues runs the tasks of all conversations. Tasks of one conversation run in order; different conversations run in
// parallel. Each conversation has at most one goroutine per class, and only while tasks are waiting.
type queues struct {
	content  func(ctx context.Context, q *queue, t *task) // runs a task of classContent; may merge later tasks into it
	broke    func(t *task)                                // called after a task has panicked
	log      *slog.Logger
	patience time.Duration // timeout of control and urgent tasks

	life          context.Context // context of all tasks; cancelled if tasks do not end in time after stop
	end           context.CancelFunc
	background    context.Context // context of the goroutines of spawn; cancelled at the start of stop
	endBackground context.CancelFunc
	wg            sync.WaitGroup

	mu             sync.Mutex
	byConversation map[orchestrator.ConversationID]*queue
	aborted        map[orchestrator.ConversationID]time.Time // times of recent aborts
}

// phase describes what the running task of classContent does.
type phase int

const (
	uninterruptible phase = iota // the task does not wait; no abort can drop it
	gathering                    // the task waits for more messages of the same prompt, or for the disk
	fetching                     // the task waits for the network; commands may run at the same time
)

// queue contains the tasks of one conversation. queues.mu guards its fields.
type queue struct {
	all     *queues
	id      orchestrator.ConversationID
	waiting [classes][]*task
	active  [classes]*task
	worker  [classes]bool
	phase   phase         // phase of the task that is active in classContent
	full    [classes]bool // the user was notified of too many waiting tasks; reset when there is space
	changed chan struct{} // closed and replaced when one of the fields above changes
}

func newQueues(log *slog.Logger, patience time.Duration) *queues {
	life, end := context.WithCancel(context.Background())
	side, endBeside := context.WithCancel(life)
	return &queues{
		log: log, patience: patience, life: life, end: end, background: side, endBackground: endBeside,
		byConversation: make(map[orchestrator.ConversationID]*queue),
		aborted:        make(map[orchestrator.ConversationID]time.Time),
	}
}

// closed reports whether stop was called. The caller must hold k.mu.
func (k *queues) closed() bool { return k.background.Err() != nil }

type admission int

const (
	admitted admission = iota
	crowded            // the queue is full; the caller must notify the user
	silenced           // the queue is full; the user was already notified
	stopping           // ductor is stopping; the next process will run the task
)

// enqueue adds t to the queue of its conversation. It never blocks.
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

// behindCommand reports whether a command or button is waiting or running in the conversation, so that a new prompt
// would have to wait.
func (k *queues) behindCommand(in orchestrator.ConversationID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.byConversation[in]
	return q != nil && (q.active[classControl] != nil || len(q.waiting[classControl]) > 0)
}

// promptBefore reports whether a prompt that was sent before t is waiting in the queue, or is about to become a turn.
func (q *queue) promptBefore(t *task) bool {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	return q.before(classContent, t.seq)
}

// abortWordsAfter is the time after an abort in which an abort word, such as "stop", cannot become a prompt. Users
// often write "stop" more than once.
const abortWordsAfter = 10 * time.Second

func (q *queue) recordAbort() {
	k := q.all
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.aborted, func(_ orchestrator.ConversationID, at time.Time) bool {
		return time.Since(at) >= abortWordsAfter
	})
	k.aborted[q.id] = time.Now()
}

// abortedRecently reports whether the conversation was aborted less than abortWordsAfter ago.
func (q *queue) abortedRecently() bool {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	at, found := q.all.aborted[q.id]
	return found && time.Since(at) < abortWordsAfter
}

// becomeContent replaces the active task t by a content task at the same position.
func (q *queue) becomeContent(t *task) {
	k := q.all
	k.mu.Lock()
	defer k.mu.Unlock()
	q.insert(&task{seq: t.seq, class: classContent, conv: t.conv, updates: t.updates, content: t.content})
}

// insert adds a task at the position of its seq. The caller must hold the lock.
func (q *queue) insert(t *task) {
	waiting := q.waiting[t.class]
	i, _ := slices.BinarySearchFunc(waiting, t.seq, func(o *task, seq int64) int { return cmp.Compare(o.seq, seq) })
	q.waiting[t.class] = slices.Insert(waiting, i, t)
	q.wake(t.class)
}

// wake starts the goroutine for a class if it is not running, and wakes all goroutines that wait in await. The caller
// must hold the lock.
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

// take waits until the first task of the class may run, and makes it the active task. It returns nil if no task is
// waiting or ductor is stopping.
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
		q.await(context.Background()) // needs no timeout, because the task that runs before this one has one
	}
}

// ready reports whether t may run now. It returns false if t must wait for an earlier task.
func (q *queue) ready(t *task) bool {
	switch t.class {
	case classUrgent:
		return true
	case classControl:
		return !q.before(classUrgent, t.seq) && (q.phase == fetching || !q.before(classContent, t.seq))
	default:
		return !q.before(classUrgent, t.seq) && !q.before(classControl, t.seq)
	}
}

// before reports whether a task of class c with a position before seq is waiting or running.
func (q *queue) before(c class, seq int64) bool {
	if a := q.active[c]; a != nil && a.seq < seq {
		return true
	}
	return len(q.waiting[c]) > 0 && q.waiting[c][0].seq < seq
}

// await waits until the queue changes. It returns false if ctx is done. The caller must hold the lock, which await
// releases during the wait.
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

// awaitBefore waits until all tasks of class c that are older than t have ended, or ctx is done.
func (q *queue) awaitBefore(ctx context.Context, c class, t *task) {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	for q.before(c, t.seq) && q.await(ctx) {
	}
}

// awaitAborts waits until no abort of a conversation is waiting or running. It returns false if ctx is done.
func (k *queues) awaitAborts(ctx context.Context, in orchestrator.ConversationID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.byConversation[in]
	for q != nil && q.before(classUrgent, newest) {
		if !q.await(ctx) {
			return false
		}
	}
	return ctx.Err() == nil
}

// retire removes the queue if it has no tasks and no goroutines. The caller must hold the lock.
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
		q.phase = uninterruptible
	}
	q.touch()
}

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

// spawn runs f in a new goroutine. The context of f is cancelled when ductor stops.
func (k *queues) spawn(f func(ctx context.Context)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed() {
		k.wg.Go(func() { f(k.background) })
	}
}

// stop prevents further tasks from starting, and cancels content tasks that wait for the network or for more messages.
// It waits for all other tasks until ctx is done, and then cancels them too. Unfinished work stays in the database for
// the next process.
func (k *queues) stop(ctx context.Context) {
	k.mu.Lock()
	k.endBackground()
	for _, q := range k.byConversation {
		if t := q.active[classContent]; t != nil && q.phase != uninterruptible && t.stop != nil {
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
