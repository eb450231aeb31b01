package claude

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
)

// memory is the state that the turns of one process share: Claude's totals since the start of the process, and values
// that Claude prints only once.
type memory struct {
	costUSD float64
	byModel map[cli.ModelID]cli.Usage
	denied  map[string]bool // by digest of the call's ID
	denials []string        // the keys of denied, in order
	warned  map[string]bool
	model   cli.ModelID // model in the last init line
	tasks   tasks
	fill    cli.Fill
	plan    plan
	mode    string // permission mode to which Claude reported a change; empty if none
}

func newMemory() *memory {
	return &memory{
		byModel: map[cli.ModelID]cli.Usage{},
		denied:  map[string]bool{},
		warned:  map[string]bool{},
	}
}

// deny records a denied call. It returns false if the call was recorded before.
func (m *memory) deny(call string) bool {
	if m.denied[call] {
		return false
	}
	m.denied[call] = true
	m.denials = append(m.denials, call)
	return true
}

// tasks are Claude's tasks until a turn has reported their end. After a turn they are the background work. Safe for
// concurrent use.
type tasks struct {
	mu   sync.Mutex
	open map[string]bool // by ID; true if the task has ended, which Claude will report in a later turn
	told []string        // summaries of ended tasks for the next take
}

// take returns the summaries of the tasks that ended since the last call, in one line.
func (t *tasks) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := oneLine(strings.Join(t.told, " · "))
	t.told = nil
	return line
}

// line updates the tasks by a line of output.
func (t *tasks) line(l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case l.Type == "result":
		maps.DeleteFunc(t.open, func(_ string, ended bool) bool { return ended })
	case l.Type != "system" || l.TaskID == "":
	case l.Subtype == "task_started":
		t.begin(l.TaskID)
	case l.Subtype == "task_notification" && l.Status != nil && (*l.Status == "completed" || *l.Status == "failed"):
		if _, open := t.open[l.TaskID]; open {
			t.open[l.TaskID] = true
			if l.Summary != "" {
				t.told = append(t.told[max(0, len(t.told)-7):], l.Summary)
			}
		}
	case l.Subtype == "task_notification": // the task was stopped from outside
		delete(t.open, l.TaskID)
	}
}

// begin adds an open task. The caller holds mu or has exclusive access to t.
func (t *tasks) begin(id string) {
	if t.open == nil {
		t.open = map[string]bool{}
	}
	t.open[id] = false
}

// list returns the open tasks, sorted.
func (t *tasks) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.open))
}

// note is stored with the mark of a turn. It contains the IDs of the turn's messages, and the state that a process of
// ductor needs to read the turn's output after a restart.
type note struct {
	Session cli.AgentSessionID        `json:"s,omitempty"`
	Model   cli.ModelID               `json:"m,omitempty"` // model in the last init line
	CostUSD float64                   `json:"usd,omitempty"`
	Models  map[cli.ModelID]cli.Usage `json:"u,omitempty"`
	Denied  []string                  `json:"d,omitempty"` // digests of the calls' IDs
	Warned  []string                  `json:"w,omitempty"`
	Tasks   []string                  `json:"t,omitempty"` // open tasks
	Before  turnSettings              `json:"b"`           // at the start of the turn
	During  turnSettings              `json:"n"`           // during the turn

	messages
	Answered []cli.ApprovalID `json:"ans,omitempty"`
}

// messages are the IDs of the messages of a turn.
type messages struct {
	Prompt  string   `json:"p,omitempty"`       // empty in notes of older versions
	Steers  []string `json:"steer,omitempty"`   // IDs of messages sent during the turn, in order
	Sending string   `json:"sending,omitempty"` // ID in Steers of the message that is written after this note
}

// promptOf returns the ID of the turn's prompt.
func (m messages) promptOf(turn cli.TurnID) string { return cmp.Or(m.Prompt, idOf(turn)) }

// steerOf returns the ID of the message steer that is sent during the turn.
func (m messages) steerOf(turn, steer cli.TurnID) string {
	return idOf(cmp.Or(cli.TurnID(m.Prompt), turn) + "/" + steer)
}

const (
	keptDenied = 32
	keptWarned = 16
)

// noteOf returns a note with the state m.
func noteOf(id cli.AgentSessionID, m *memory, before, during turnSettings) note {
	return note{
		Session: id, Model: m.model, CostUSD: m.costUSD, Models: maps.Clone(m.byModel),
		Denied: lastOf(m.denials, keptDenied), Warned: lastOf(slices.Sorted(maps.Keys(m.warned)), keptWarned),
		Tasks:  m.tasks.list(),
		Before: before, During: during,
	}
}

func lastOf(all []string, n int) []string { return slices.Clone(all[max(len(all)-n, 0):]) }

func (n note) String() string {
	b, err := json.Marshal(n)
	if err != nil {
		return "" // the cost is NaN or infinite, which JSON from Claude cannot contain
	}
	return string(b)
}

// readNote parses the result of note.String. It returns an empty note for an unreadable text.
func readNote(text string) note {
	var n note
	if json.Unmarshal([]byte(text), &n) != nil {
		return note{}
	}
	return n
}

// memory returns the memory that n describes.
func (n note) memory() *memory {
	m := newMemory()
	m.costUSD, m.model = n.CostUSD, n.Model
	maps.Copy(m.byModel, n.Models)
	for _, d := range n.Denied {
		m.deny(d)
	}
	for _, w := range n.Warned {
		m.warned[w] = true
	}
	for _, id := range n.Tasks {
		m.tasks.begin(id)
	}
	return m
}

// Tools by which Claude Code manages its plan. In older versions TodoWrite replaces the whole plan. Newer versions have
// tools for single steps.
const (
	toolTodos      = "TodoWrite"
	toolTaskCreate = "TaskCreate"
	toolTaskUpdate = "TaskUpdate"
	toolTaskList   = "TaskList"
	toolTaskGet    = "TaskGet"
)

// keepsPlan reports whether a tool only manages the plan. Users then see the plan instead of the tool.
func keepsPlan(tool string) bool {
	return slices.Contains([]string{toolTodos, toolTaskCreate, toolTaskUpdate, toolTaskList, toolTaskGet}, tool)
}

// plan is the plan of a session, in order.
type plan struct{ tasks []task }

type task struct {
	id string
	cli.PlanStep
}

var createdTask = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^Task #(\S+) created`) })

// change applies a successful tool call to the plan. It reports whether the plan changed.
func (p *plan) change(tool string, input json.RawMessage, output string) bool {
	var in struct {
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
		ID      string `json:"taskId"`
		Subject string `json:"subject"`
		Status  string `json:"status"`
	}
	if tolerant(json.Unmarshal(input, &in)) != nil {
		return false
	}
	switch tool {
	case toolTodos:
		p.tasks = nil
		for _, t := range in.Todos {
			p.tasks = append(p.tasks, task{PlanStep: cli.PlanStep{Text: oneLine(t.Content), State: cli.PlanStateOf(t.Status)}})
		}
		return true
	case toolTaskCreate:
		id := ""
		if m := createdTask().FindStringSubmatch(output); m != nil {
			id = m[1]
		}
		p.tasks = append(p.tasks, task{id, cli.PlanStep{Text: oneLine(in.Subject), State: cli.PlanOpen}})
		return true
	case toolTaskUpdate:
		return p.update(in.ID, in.Subject, in.Status)
	}
	return false
}

func (p *plan) update(id, subject, status string) bool {
	i := slices.IndexFunc(p.tasks, func(t task) bool { return t.id == id })
	switch {
	case i < 0 || id == "": // a step from before this process
		return false
	case status == "deleted":
		p.tasks = slices.Delete(p.tasks, i, i+1)
		return true
	}
	if subject != "" {
		p.tasks[i].Text = oneLine(subject)
	}
	if status != "" {
		p.tasks[i].State = cli.PlanStateOf(status)
	}
	return true
}

// changed returns the event for the current plan.
func (p *plan) changed() cli.PlanChanged {
	var ev cli.PlanChanged
	for _, t := range p.tasks {
		ev.Steps = append(ev.Steps, t.PlanStep)
	}
	return ev
}
