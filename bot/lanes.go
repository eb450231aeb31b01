package bot

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"ductor/orchestrator"
)

// laneClass says how far a task may overtake others of its conversation.
type laneClass int

// The classes, the most urgent first. Urgent tasks (aborts) wait for nothing. Control tasks (commands,
// buttons) overtake content that waits for the network, and only that: "/new" sent after a prompt comes
// after it. Content (prompts) is taken in order, and after every command that was sent before it.
const (
	laneUrgent laneClass = iota
	laneControl
	laneContent
	laneClasses
)

// laneBounds is how many tasks of each class may wait in one conversation.
var laneBounds = [laneClasses]int{8, 32, 128}

// task is what one update asks for.
type task struct {
	seq     uint64 // order of arrival
	class   laneClass
	conv    orchestrator.ConversationID
	updates []int64
	content *incoming                                   // content only
	do      func(ctx context.Context, l *lane, t *task) // urgent and control only
	dropped bool                                        // an abort took it; its updates are no longer ours
	stop    context.CancelFunc                          // of content that waits for the network
}

// laneKeeper runs the tasks of every conversation: in order within one, side by side across them. Its
// goroutines exist only while there is work, at most one per class and conversation.
type laneKeeper struct {
	content  func(ctx context.Context, l *lane, t *task) // runs a content task and those it merges
	broke    func(t *task)                               // tells the person that a task panicked
	log      *slog.Logger
	patience time.Duration // a control or urgent task is cancelled after it

	life context.Context // of tasks; cancelled when a stop runs out of time
	end  context.CancelFunc
	rest context.Context // of what is done beside tasks; cancelled when a stop begins
	quit context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	lanes  map[orchestrator.ConversationID]*lane
	seq    uint64
	closed bool
}

// lane is one conversation's tasks. Its fields are guarded by the keeper's lock.
type lane struct {
	keeper  *laneKeeper
	id      orchestrator.ConversationID
	waiting [laneClasses][]*task
	active  [laneClasses]*task
	worker  [laneClasses]bool
	slow    bool              // the active content waits for the network or for further parts
	full    [laneClasses]bool // the overflow was told about, until there is room again
	changed chan struct{}     // closed and replaced when anything above changes
}

func newLaneKeeper(log *slog.Logger, patience time.Duration) *laneKeeper {
	life, end := context.WithCancel(context.Background())
	rest, quit := context.WithCancel(life)
	return &laneKeeper{
		log: log, patience: patience, life: life, end: end, rest: rest, quit: quit,
		lanes: make(map[orchestrator.ConversationID]*lane),
	}
}

// admission says what became of a task that was put.
type admission int

const (
	admitted admission = iota
	crowded            // no room, and the person does not know yet
	silenced           // no room, and the person was told
	stopping           // ductor ends: the task stays in the journal
)

// put appends t to its lane. It never blocks.
func (k *laneKeeper) put(t *task) admission {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return stopping
	}
	l := k.lanes[t.conv]
	if l == nil {
		l = &lane{keeper: k, id: t.conv, changed: make(chan struct{})}
		k.lanes[t.conv] = l
	}
	if len(l.waiting[t.class]) >= laneBounds[t.class] {
		if l.full[t.class] {
			return silenced
		}
		l.full[t.class] = true
		return crowded
	}
	k.seq++
	t.seq = k.seq
	l.waiting[t.class] = append(l.waiting[t.class], t)
	l.wake(t.class)
	return admitted
}

// becomeContent puts an active task back as content, in the place it arrived at.
func (l *lane) becomeContent(t *task) {
	k := l.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	c := &task{seq: t.seq, class: laneContent, conv: t.conv, updates: t.updates, content: t.content}
	i, _ := slices.BinarySearchFunc(l.waiting[laneContent], c.seq, func(o *task, seq uint64) int {
		if o.seq < seq {
			return -1
		}
		return 1
	})
	l.waiting[laneContent] = slices.Insert(l.waiting[laneContent], i, c)
	l.wake(laneContent)
}

// wake starts the class's worker if it has none, and lets every waiter look again. The lock is held.
func (l *lane) wake(c laneClass) {
	if !l.worker[c] && !l.keeper.closed {
		l.worker[c] = true
		l.keeper.wg.Add(1)
		go l.work(c)
	}
	l.touch()
}

func (l *lane) touch() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *lane) work(c laneClass) {
	defer l.keeper.wg.Done()
	for {
		t := l.take(c)
		if t == nil {
			return
		}
		l.run(t)
		l.release(c)
	}
}

// take waits until the head of the class may run and makes it active. It gives nil when nothing is left,
// or when ductor ends.
func (l *lane) take(c laneClass) *task {
	k := l.keeper
	for {
		k.mu.Lock()
		if len(l.waiting[c]) == 0 || k.closed {
			l.worker[c] = false
			l.retire()
			l.touch()
			k.mu.Unlock()
			return nil
		}
		if t := l.waiting[c][0]; l.ready(t) {
			l.waiting[c] = slices.Delete(l.waiting[c], 0, 1)
			l.active[c], l.full[c] = t, false
			l.touch()
			k.mu.Unlock()
			return t
		}
		changed := l.changed
		k.mu.Unlock()
		// Bounded: what is waited for is active and has a deadline of its own.
		<-changed
	}
}

// ready says whether nothing that came before t stands in its way.
func (l *lane) ready(t *task) bool {
	switch t.class {
	case laneUrgent:
		return true
	case laneControl:
		return !l.before(laneUrgent, t.seq) && (l.slow || !l.before(laneContent, t.seq))
	default:
		return !l.before(laneUrgent, t.seq) && !l.before(laneControl, t.seq)
	}
}

// before says whether a task of class c that came before seq is not done.
func (l *lane) before(c laneClass, seq uint64) bool {
	if a := l.active[c]; a != nil && a.seq < seq {
		return true
	}
	return len(l.waiting[c]) > 0 && l.waiting[c][0].seq < seq
}

// retire forgets the lane when nobody works in it. The lock is held.
func (l *lane) retire() {
	for c := range laneClasses {
		if l.worker[c] || len(l.waiting[c]) > 0 {
			return
		}
	}
	delete(l.keeper.lanes, l.id)
}

func (l *lane) release(c laneClass) {
	k := l.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	l.active[c] = nil
	if c == laneContent {
		l.slow = false
	}
	l.touch()
}

// run runs one task. A panic ends the task and nothing else.
func (l *lane) run(t *task) {
	defer func() {
		if p := recover(); p != nil {
			l.keeper.log.Error("handler panicked", "updates", t.updates, "panic", p, "stack", string(debug.Stack()))
			l.keeper.broke(t)
		}
	}()
	if t.class == laneContent {
		ctx, cancel := context.WithCancel(l.keeper.life)
		defer cancel()
		l.keeper.mu.Lock()
		t.stop = cancel
		l.keeper.mu.Unlock()
		l.keeper.content(ctx, l, t)
		return
	}
	ctx, cancel := context.WithTimeout(l.keeper.life, l.keeper.patience)
	defer cancel()
	t.do(ctx, l, t)
}

// beside runs f on a goroutine of its own, for what a task does not wait for. Its ctx ends when ductor does.
func (k *laneKeeper) beside(f func(ctx context.Context)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.wg.Go(func() { f(k.rest) })
	}
}

// stop starts no further tasks, cuts short what waits for the network, and waits for the rest until ctx
// ends; then it cancels that too. What was not done stays in the journal.
func (k *laneKeeper) stop(ctx context.Context) {
	k.quit()
	k.mu.Lock()
	k.closed = true
	for _, l := range k.lanes {
		if t := l.active[laneContent]; t != nil && l.slow && t.stop != nil {
			t.stop()
		}
		l.touch()
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
