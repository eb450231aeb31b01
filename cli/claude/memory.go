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

// memory is the state that all turns of a process share. It contains totals since the start of the process, and values
// that Claude prints only once.
type memory struct {
	costUSD float64
	byModel map[cli.ModelID]cli.Usage
	denied  map[string]bool // digests of the call IDs of denied tools
	denials []string        // the keys of denied, in order
	warned  map[string]bool
	model   cli.ModelID // the model that Claude named last in a system/init line
	tasks   tasks
	fill    cli.Fill
	plan    plan
	mode    string // permission mode that Claude itself has set; otherwise empty
}

func newMemory() *memory {
	return &memory{
		byModel: map[cli.ModelID]cli.Usage{},
		denied:  map[string]bool{},
		warned:  map[string]bool{},
	}
}

// deny records a denied tool call. It returns false if the call is already recorded.
func (m *memory) deny(call string) bool {
	if m.denied[call] {
		return false
	}
	m.denied[call] = true
	m.denials = append(m.denials, call)
	return true
}

// tasks contains Claude's tasks, such as commands in the background. It contains a task until a turn has reported the
// task's end. Safe for concurrent use.
type tasks struct {
	mu        sync.Mutex
	open      map[string]bool // by task ID; the value is true if the task has ended
	summaries []string        // summaries of ended tasks, until the next call of takeSummaries
}

// takeSummaries returns and removes the summaries of tasks that have ended, in one line.
func (t *tasks) takeSummaries() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := oneLine(strings.Join(t.summaries, " · "))
	t.summaries = nil
	return line
}

// line updates the tasks with a line of output.
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
				t.summaries = append(t.summaries[max(0, len(t.summaries)-7):], l.Summary)
			}
		}
	case l.Subtype == "task_notification": // any other status means that the task was stopped
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

// list returns the IDs of the open tasks, sorted.
func (t *tasks) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.open))
}

// note is the state that ductor needs to continue a turn after a restart. It is stored in cli.Mark.Note.
type note struct {
	start snapshot
	sent  messages
}

// snapshot is the state of a process and its session before a turn. It does not change during the turn.
type snapshot struct {
	Session cli.AgentSessionID        `json:"s,omitempty"`
	Model   cli.ModelID               `json:"m,omitempty"` // the model that Claude named last
	CostUSD float64                   `json:"usd,omitempty"`
	Models  map[cli.ModelID]cli.Usage `json:"u,omitempty"`
	Denied  []string                  `json:"d,omitempty"` // digests of the IDs of denied tool calls
	Warned  []string                  `json:"w,omitempty"`
	Tasks   []string                  `json:"t,omitempty"` // IDs of the open tasks
	Before  turnSettings              `json:"b"`           // settings before the turn
	During  turnSettings              `json:"n"`           // settings that the turn requests
}

// messages are the messages that ductor sends to Claude during a turn.
type messages struct {
	Prompt string `json:"p,omitempty"` // ID of the prompt; empty in notes of older versions
	// Steers contains the messages that were added during the turn, in order: the ID of each message, a space, and its
	// turn ID. Notes of older versions have no turn IDs.
	Steers   []string         `json:"steer,omitempty"`
	Sending  string           `json:"sending,omitempty"` // ID of the message in Steers that ductor was sending
	Answered []cli.ApprovalID `json:"ans,omitempty"`
}

// promptOf returns the ID of the turn's prompt.
func (m *messages) promptOf(turn cli.TurnID) string { return cmp.Or(m.Prompt, idOf(turn)) }

// steerOf returns the message ID of a prompt that is added to a running turn. turn is the ID of the running turn. steer
// is the turn ID of the added prompt.
func (m *messages) steerOf(turn, steer cli.TurnID) string {
	return idOf(cmp.Or(cli.TurnID(m.Prompt), turn) + "/" + steer)
}

const (
	keptDenied = 32
	keptWarned = 16
)

// noteOf returns a note that contains the state in m and the given settings.
func noteOf(id cli.AgentSessionID, m *memory, before, during turnSettings) note {
	return note{start: snapshot{
		Session: id, Model: m.model, CostUSD: m.costUSD, Models: maps.Clone(m.byModel),
		Denied: lastOf(m.denials, keptDenied), Warned: lastOf(slices.Sorted(maps.Keys(m.warned)), keptWarned),
		Tasks:  m.tasks.list(),
		Before: before, During: during,
	}}
}

func lastOf(all []string, n int) []string { return slices.Clone(all[max(len(all)-n, 0):]) }

func (n note) String() string {
	b, err := json.Marshal(storedNote{n.start, n.sent})
	if err != nil {
		return "" // the cost is NaN or infinite, which JSON cannot contain
	}
	return string(b)
}

// readNote parses the result of note.String. It returns an empty note for an unreadable text.
func readNote(text string) note {
	var stored storedNote
	if json.Unmarshal([]byte(text), &stored) != nil {
		return note{}
	}
	return note{stored.snapshot, stored.messages}
}

// memory returns the memory of a process, as far as the snapshot contains it.
func (s snapshot) memory() *memory {
	m := newMemory()
	m.costUSD, m.model = s.CostUSD, s.Model
	maps.Copy(m.byModel, s.Models)
	for _, d := range s.Denied {
		m.deny(d)
	}
	for _, w := range s.Warned {
		m.warned[w] = true
	}
	for _, id := range s.Tasks {
		m.tasks.begin(id)
	}
	return m
}

// Tools with which Claude Code manages its plan. In older versions, TodoWrite replaces the whole plan. Newer versions
// have tools for single steps.
const (
	toolTodos      = "TodoWrite"
	toolTaskCreate = "TaskCreate"
	toolTaskUpdate = "TaskUpdate"
	toolTaskList   = "TaskList"
	toolTaskGet    = "TaskGet"
)

// keepsPlan reports whether a tool only reads or changes the plan. Users see the plan instead of such a tool.
func keepsPlan(tool string) bool {
	return slices.Contains([]string{toolTodos, toolTaskCreate, toolTaskUpdate, toolTaskList, toolTaskGet}, tool)
}

// plan contains the steps of a session's plan, in order.
type plan struct{ tasks []task }

type task struct {
	id string
	cli.PlanStep
}

var createdTask = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^Task #(\S+) created`) })

// change applies a successful call of one of the plan's tools. It reports whether the plan changed.
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
	case i < 0 || id == "": // the step is unknown, because an earlier process created it
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

func (p *plan) changed() cli.PlanChanged {
	var ev cli.PlanChanged
	for _, t := range p.tasks {
		ev.Steps = append(ev.Steps, t.PlanStep)
	}
	return ev
}
