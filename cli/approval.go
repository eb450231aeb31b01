package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// ApprovalID is the agent's id of an approval or of questions that it asked for. It is unique within a turn.
type ApprovalID string

// ApprovalAsked says that the agent waits for a user before it goes on with a tool.
type ApprovalAsked struct {
	ID    ApprovalID `json:"id"`
	Tool  string     `json:"tool"`            // the agent's own name of it, such as "Bash"; PlanTool for a plan
	Title string     `json:"title,omitempty"` // one line: the exact command, the path
	// Detail is all there is to decide on, as text: the whole command, the plan. Empty where Title is that.
	Detail  string          `json:"detail,omitempty"`
	Changes []FileChanged   `json:"changes,omitempty"` // what the tool would change, where the agent says
	Input   json.RawMessage `json:"input,omitempty"`   // whole, as the agent gave it; may be nil
	// Fields are what else the request holds, as Reading.Fields finds it.
	Fields []Field `json:"fields"`
	// Missing is what the agent left out, such as "the command": without it the request cannot be allowed. Empty where
	// the request says all.
	Missing string `json:"missing,omitempty"`
	// Links are the paths of the request that lead elsewhere, as ductor finds them where the agent works.
	Links   []Link `json:"links,omitempty"`
	Reason  string `json:"reason,omitempty"`  // why it asks, in its own words, whole; may be empty
	Started ToolID `json:"started,omitempty"` // the tool as ToolStarted tells of it, before or once it is allowed; may be empty
	// Deaf says that the agent is not told why it is denied: its protocol has no place for a reason.
	Deaf bool `json:"deaf,omitempty"`
}

// Link is a path that leads elsewhere, because it or a directory on its way is a symbolic link.
type Link struct {
	Path    string `json:"path"`              // as the request has it
	Real    string `json:"real"`              // relative to the working directory if it is below it
	Outside bool   `json:"outside,omitempty"` // of the working directory
}

// PlanTool is the Tool of an ApprovalAsked that is about a plan: allowing it lets the agent begin. Where the agent keeps the plan in a file,
// Title is the file's path, Detail and Input are empty, and whoever asks a user reads the file.
const PlanTool = "plan"

// QuestionAsked says that the agent waits for a user's choice.
type QuestionAsked struct {
	ID        ApprovalID
	Tool      string `json:",omitempty"` // of ductor's own, that asks; empty where the agent does
	Started   ToolID `json:",omitempty"` // the tool as ToolStarted tells of it; may be empty
	Questions []Question
}

// Question is one of several that an agent asks together.
type Question struct {
	Header  string   `json:"header,omitempty"` // a word or two; may be empty
	Text    string   `json:"text"`
	Options []Option `json:"options,omitempty"` // may be empty: then only free text answers it
	Multi   bool     `json:"multi,omitempty"`   // several options may be chosen
	Free    bool     `json:"free,omitempty"`    // an answer in own words is taken as well
	Secret  bool     `json:"secret,omitempty"`  // the answer is not to be shown or kept
}

// Option is one answer that is offered.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// QuestionsIn reads the questions in a tool's input, as Claude and Qwen Code write them. Both take an answer in own words. What has
// another type than theirs is left out.
func QuestionsIn(input json.RawMessage) (all []Question) {
	var in struct {
		Questions []struct {
			Question string   `json:"question"`
			Header   string   `json:"header"`
			Multi    bool     `json:"multiSelect"`
			Options  []Option `json:"options"`
		} `json:"questions"`
	}
	var mismatch *json.UnmarshalTypeError
	if err := json.Unmarshal(input, &in); err != nil && !(errors.As(err, &mismatch) && mismatch.Field != "") {
		return nil
	}
	for _, q := range in.Questions {
		all = append(all, Question{Header: q.Header, Text: q.Question, Options: q.Options, Multi: q.Multi, Free: true})
	}
	return all
}

// What agents hear in place of an answer to their questions.
const (
	NoUserAnswers = "No user can answer this dialog here. Put the question, with its options, into your answer as plain " +
		"text and end your turn; the user will reply with the next message."
	NoAnswer = "The user does not want to answer."
)

// ApprovalWithdrawn says that the agent no longer waits for a decision or an answer: it gave up, or got it.
type ApprovalWithdrawn struct {
	ID      ApprovalID
	Allowed bool `json:",omitzero"` // the agent got leave: what it asked for runs
	Pressed bool `json:",omitzero"` // a user decided it just now
}

// Asks are the requests of a turn that users are to answer. Make one with make.
type Asks map[ApprovalID]bool

// Note takes an event of the turn, and says whether it is about a request.
func (a Asks) Note(ev Event) (about bool) {
	switch ev := ev.(type) {
	case ApprovalAsked:
		a[ev.ID] = true
	case QuestionAsked:
		a[ev.ID] = true
	case ApprovalWithdrawn:
		delete(a, ev.ID)
	default:
		return false
	}
	return true
}

func (ApprovalAsked) event()     {}
func (QuestionAsked) event()     {}
func (ApprovalWithdrawn) event() {}

// Decision is a user's answer to an ApprovalAsked or a QuestionAsked.
type Decision struct {
	Allow  bool
	Reason string // told to the agent when it is not allowed; may be empty
	// Answers has the chosen labels, or own words, for each Question in order.
	Answers [][]string
}

// Widens says whether the request asks for more than usual. No rule may let it through: rules do not say so.
func (a ApprovalAsked) Widens() bool {
	return slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Weight == WiderField }) ||
		slices.ContainsFunc(a.Links, func(l Link) bool { return l.Outside })
}

// SaysMore reports whether a field says more than title, detail, changes and what belongs to an edit.
func (a ApprovalAsked) SaysMore() bool {
	return slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Weight == PlainField || f.Weight == WiderField })
}

// OnlyEdits reports whether the request writes the files of Changes and does nothing else: it says nothing but that.
func (a ApprovalAsked) OnlyEdits() bool {
	return len(a.Changes) > 0 && a.Detail+a.Reason+a.Missing == "" && !a.SaysMore()
}

// RunsCommand reports whether the request is one to run a command. Each agent has its own name for the tool.
func (a ApprovalAsked) RunsCommand() bool {
	switch a.Tool {
	case "Bash", "PowerShell", "bash", "powershell", "shell", "exec_command", "shell_command", "local_shell", "run_shell_command", "execute":
		return a.Title+a.Detail != "" && len(a.Changes) == 0
	}
	return false
}

// OwnWords returns what an agent says of a request, or "" if that is no more than which kind of tool it uses.
func OwnWords(said string) string {
	switch strings.ToLower(strings.Trim(said, " .")) {
	case "run a command", "run command", "create file", "edit file", "write file", "read file", "view file":
		return ""
	}
	return strings.TrimSpace(said)
}

// HasWord reports whether a word of a command is this one, quoted or not.
func HasWord(command, word string) bool {
	return slices.ContainsFunc(strings.Fields(command), func(w string) bool { return strings.Trim(w, `"';&|()<>`) == word })
}

// Allowable says whether the request says what it is about, so that a user can allow it.
func (a ApprovalAsked) Allowable() bool {
	said := strings.TrimSpace(a.Title+a.Detail) != "" || len(a.Changes) > 0 || a.SaysMore()
	return said && a.Missing == ""
}
