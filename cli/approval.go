package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// ApprovalID is the agent's ID of an approval or of questions. It is unique within a turn.
type ApprovalID string

// ApprovalAsked is the event that the agent asks to use a tool and waits for a user's decision.
type ApprovalAsked struct {
	ID    ApprovalID `json:"id"`
	Tool  string     `json:"tool"`            // the agent's own name for the tool, such as "Bash"; PlanTool for a plan
	Title string     `json:"title,omitempty"` // one line: the exact command, the path
	// Detail is the whole text that the user decides on, such as a command or a plan. It is empty if Title is the whole
	// text.
	Detail  string          `json:"detail,omitempty"`
	Changes []FileChanged   `json:"changes,omitempty"` // the changes that the tool would make, if the agent lists them
	Input   json.RawMessage `json:"input,omitempty"`   // the whole input, as the agent sent it; may be nil
	// Fields are the remaining parts of the request, as Reading.Fields finds them.
	Fields []Field `json:"fields"`
	// Missing names a part that the agent left out, such as "the command". Users cannot allow such a request. Missing
	// is empty if the request is complete.
	Missing string `json:"missing,omitempty"`
	Effect  Effect `json:"effect,omitzero"`
	Reason  string `json:"reason,omitempty"` // the agent's own words on why it asks, complete; may be empty
	// Started is the ID of the tool's ToolStarted event. That event may come before the request or after its approval.
	// Started may be empty.
	Started ToolID `json:"started,omitempty"`
	// Deaf is set if the agent's protocol cannot pass on the reason of a denial.
	Deaf bool `json:"deaf,omitempty"`
}

// PlanTool is the Tool of an ApprovalAsked for a plan. The agent starts to work after the user allows the plan. If the
// agent stores the plan in a file, Title is the path, and Detail and Input are empty. The code that asks the user then
// reads the file.
const PlanTool = "plan"

// QuestionAsked is the event that the agent waits for a user's answers.
type QuestionAsked struct {
	ID        ApprovalID
	Tool      string `json:",omitempty"` // the tool of ductor that asks; empty if the agent asks
	Started   ToolID `json:",omitempty"` // the tool's ToolStarted; may be empty
	Questions []Question
}

// Question is a question of an agent. An agent may ask several questions together.
type Question struct {
	Header  string   `json:"header,omitempty"` // a word or two; may be empty
	Text    string   `json:"text"`
	Options []Option `json:"options,omitempty"` // may be empty: then only free text answers the question
	Multi   bool     `json:"multi,omitempty"`   // several options may be chosen
	Free    bool     `json:"free,omitempty"`    // the user may also answer in their own words
	Secret  bool     `json:"secret,omitempty"`  // the answer must not be shown or stored
}

// Option is a possible answer.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// QuestionsIn parses the questions in a tool's input, in the format of Claude and Qwen Code. Both agents accept answers
// in the user's own words. QuestionsIn skips fields of unexpected types.
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

// Replies that agents get if no user answers their questions.
const (
	NoUserAnswers = "No user can answer this dialog here. Put the question, with its options, into your answer as plain " +
		"text and end your turn; the user will reply with the next message."
	NoAnswer = "The user does not want to answer."
)

// ApprovalWithdrawn is the event that the agent stopped waiting for a decision or an answer: it received one, or gave
// up.
type ApprovalWithdrawn struct {
	ID      ApprovalID
	Allowed bool `json:",omitzero"` // the request was allowed, and the tool runs
	Pressed bool `json:",omitzero"` // a user made the decision just now
}

// Asks is the set of a turn's open requests to users. Create it with make.
type Asks map[ApprovalID]bool

// Note adds the request of an asking event to the set, and removes the request of an ApprovalWithdrawn. It reports
// whether ev is one of these events.
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
	Reason string // the reason of a denial, for the agent; may be empty
	// Answers lists, for each Question in order, the chosen labels or the user's own words.
	Answers [][]string
}

// Widens reports whether the request asks for more rights than usual. Rules do not cover such rights, so they must not
// allow the request.
func (a ApprovalAsked) Widens() bool {
	return slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Weight == WiderField })
}

// SaysMore reports whether the request has fields that users do not see in its title, detail, changes or edits.
func (a ApprovalAsked) SaysMore() bool {
	return slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Weight == PlainField || f.Weight == WiderField })
}

// OnlyEdits reports whether the request does nothing but write the files of Changes.
func (a ApprovalAsked) OnlyEdits() bool {
	return len(a.Changes) > 0 && a.Detail+a.Reason+a.Missing == "" && !a.SaysMore()
}

// RunsCommand reports whether the request is to run a command in the agent's own shell.
func (a ApprovalAsked) RunsCommand() bool {
	return a.Effect.Shell != NoShell && a.Title+a.Detail != "" && len(a.Changes) == 0
}

// Names reports whether the request names one of files: as a file to change, as a field, or as a text in its input.
func (a ApprovalAsked) Names(files []string, dir string) bool {
	return slices.ContainsFunc(a.Changes, func(c FileChanged) bool { return Touches(files, dir, c.Path) }) ||
		slices.ContainsFunc(a.Fields, func(f Field) bool { return NamesOne(files, dir, f.Value) }) ||
		Names(files, dir, a.Input)
}

// DistinctParts returns the request's fields and input values without labels, ordered by name. Requests that differ
// only in labels have the same parts.
func (a ApprovalAsked) DistinctParts() ([]Field, []Leaf) {
	weights := map[string]Weight{}
	for _, f := range a.Fields { // a repeated key is not a label
		if _, again := weights[f.Name]; again {
			f.Weight = PlainField
		}
		weights[f.Name] = f.Weight
	}
	label := func(name string) bool { return weights[name] == LabelField }
	fields := slices.DeleteFunc(slices.Clone(a.Fields), func(f Field) bool { return label(f.Name) })
	leaves := slices.DeleteFunc(Leaves(a.Input), func(l Leaf) bool { return label(l.Name) })
	slices.SortStableFunc(fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(leaves, func(a, b Leaf) int { return strings.Compare(a.Name, b.Name) })
	return fields, leaves
}

// OwnWords returns an agent's description of a request. It returns "" if the description only names the kind of tool,
// such as "run a command".
func OwnWords(said string) string {
	switch strings.ToLower(strings.Trim(said, " .")) {
	case "run a command", "run command", "create file", "edit file", "write file", "read file", "view file":
		return ""
	}
	return strings.TrimSpace(said)
}

// HasWord reports whether a command contains a word, quoted or not.
func HasWord(command, word string) bool {
	return slices.ContainsFunc(strings.Fields(command), func(w string) bool { return strings.Trim(w, `"';&|()<>`) == word })
}

// Allowable reports whether a user can allow the request: it must describe its action, and no part may be missing.
func (a ApprovalAsked) Allowable() bool {
	said := strings.TrimSpace(a.Title+a.Detail) != "" || len(a.Changes) > 0 || a.SaysMore()
	return said && a.Missing == ""
}
