package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// ApprovalID is an agent's ID of a request for a user's approval or answers. The ID is unique within a turn.
type ApprovalID string

// ApprovalAsked reports that the agent asks for permission to use a tool, and waits for a user's decision.
type ApprovalAsked struct {
	ID    ApprovalID `json:"id"`
	Tool  string     `json:"tool"`            // the agent's own name for the tool, such as "Bash"; PlanTool for a plan
	Title string     `json:"title,omitempty"` // one line, such as the exact command or the path
	// Detail is the whole text that the user decides on, such as a command or a plan. It is empty if Title is the whole
	// text.
	Detail  string          `json:"detail,omitempty"`
	Changes []FileChanged   `json:"changes,omitempty"` // the changes that the tool would make, if the agent lists them
	Input   json.RawMessage `json:"input,omitempty"`   // the tool's input as the agent sent it; may be nil
	// Fields are the parts of the input that Title, Detail and Changes do not show; see Reading.Fields.
	Fields []Field `json:"fields"`
	// Missing names a part that the agent left out, such as "the command". Users cannot allow an incomplete request.
	// Missing is empty if the request is complete.
	Missing string `json:"missing,omitempty"`
	Effect  Effect `json:"effect,omitzero"`
	Reason  string `json:"reason,omitempty"` // why the agent asks, in its own unshortened words; may be empty
	// Started is the ID of the tool's ToolStarted event. That event may come before the request or after its approval.
	// Started is empty if the agent does not report which tool call needs the approval.
	Started ToolID `json:"started,omitempty"`
	// Deaf is set if the agent's protocol cannot tell the agent why a user denied the request.
	Deaf bool `json:"deaf,omitempty"`
}

// PlanTool is the Tool of an ApprovalAsked for a plan. The agent starts to work after the user allows the plan. If the
// agent stored the plan in a file, Title is the file's path, and Detail and Input are empty. ductor then reads the
// file.
const PlanTool = "plan"

// QuestionAsked reports that the agent asks questions, and waits for a user's answers.
type QuestionAsked struct {
	ID        ApprovalID
	Tool      string `json:",omitempty"` // name of ductor's own tool that asks; empty if the agent itself asks
	Started   ToolID `json:",omitempty"` // ID of the ToolStarted event of the tool that asks; may be empty
	Questions []Question
}

// Question is a question of an agent. An agent may ask several questions together.
type Question struct {
	Header  string   `json:"header,omitempty"` // a word or two; may be empty
	Text    string   `json:"text"`
	Options []Option `json:"options,omitempty"` // may be empty: the user then answers in their own words
	Multi   bool     `json:"multi,omitempty"`   // several options may be chosen
	Free    bool     `json:"free,omitempty"`    // the user may also answer in their own words
	Secret  bool     `json:"secret,omitempty"`  // the answer must not be shown or stored
}

// Option is a possible answer to a Question.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// QuestionsIn parses the questions in a tool's input. Claude and Qwen Code use the same format, and both accept answers
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

// Texts that ductor sends to an agent if no user answers its questions.
const (
	NoUserAnswers = "No user can answer this dialog here. Put the question, with its options, into your answer as plain " +
		"text and end your turn; the user will reply with the next message."
	NoAnswer = "The user does not want to answer."
)

// ApprovalWithdrawn reports that the agent no longer waits for a decision or an answer. Either it has received one, or
// it has stopped waiting.
type ApprovalWithdrawn struct {
	ID      ApprovalID
	Allowed bool `json:",omitzero"` // the request was allowed, and the tool runs
	Pressed bool `json:",omitzero"` // a user decided, not a rule or a permission mode
	// Superseded is set if the agent changed its request after a user had allowed the request. ductor did not send the
	// user's decision to the agent.
	Superseded bool `json:",omitzero"`
}

// Asks is the set of a turn's open requests to users. Create it with make.
type Asks map[ApprovalID]bool

// Note updates the set: it adds the request of an ApprovalAsked or QuestionAsked, and removes the request of an
// ApprovalWithdrawn. It returns false for other events.
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

// Widens reports whether the request asks for more rights than usual. Approval rules do not cover such rights, so no
// rule may allow the request.
func (a ApprovalAsked) Widens() bool {
	return slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Weight == WiderField })
}

// SaysMore reports whether the request has fields that users do not see in its title, detail or changes.
func (a ApprovalAsked) SaysMore() bool {
	return slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Weight == PlainField || f.Weight == WiderField })
}

// OnlyEdits reports whether the request only writes the files in Changes.
func (a ApprovalAsked) OnlyEdits() bool {
	return len(a.Changes) > 0 && a.Detail+a.Reason+a.Missing == "" && !a.SaysMore()
}

// ReadFile returns the path of the file if the request only reads one file or lists one directory, and otherwise "". It
// relies on the name of the tool, so the caller must check that the tool really reads.
func (a ApprovalAsked) ReadFile() string {
	if a.Effect.Read != "" || !HasOnlyFields(a.Input, "file_path", "offset", "limit", "pages") {
		return a.Effect.Read
	}
	return TextsOf(a.Input)["file_path"]
}

// RunsCommand reports whether the request runs a command in the agent's own shell.
func (a ApprovalAsked) RunsCommand() bool {
	return a.Effect.Shell != NoShell && a.Title+a.Detail != "" && len(a.Changes) == 0
}

// Names reports whether the request mentions one of the given files. It searches the changes and fields of the request,
// the texts in its input, and the words of its command (words). Relative paths are relative to dir.
func (a ApprovalAsked) Names(files []string, dir string, words []string) bool {
	texts := slices.Concat(words, textsIn(a.Input))
	for _, f := range a.Fields {
		texts = append(texts, f.Value)
	}
	paths := pathsIn(texts)
	for _, c := range a.Changes {
		paths = append(paths, c.Path)
	}
	return anyTouches(files, dir, paths)
}

// DistinctParts returns the fields of the request and the values of its input, ordered by name. It omits labels, which
// are the fields with the weight LabelField. Two requests that differ only in labels therefore have the same parts.
func (a ApprovalAsked) DistinctParts() ([]Field, []Leaf) {
	weights := map[string]Weight{}
	// Leaves have names but no weights. If several fields have the same name, one of them may be no label. So treat
	// none of them as a label.
	for _, f := range a.Fields {
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

// OwnWords trims an agent's description of a request. It returns "" if the description only names the kind of tool,
// such as "run a command".
func OwnWords(said string) string {
	switch strings.ToLower(strings.Trim(said, " .")) {
	case "run a command", "run command", "create file", "edit file", "write file", "read file", "view file":
		return ""
	}
	return strings.TrimSpace(said)
}

// HasWord reports whether a command line contains a word. It ignores quotes and shell operators next to the word.
func HasWord(command, word string) bool {
	return slices.ContainsFunc(strings.Fields(command), func(w string) bool { return strings.Trim(w, `"';&|()<>`) == word })
}

// Allowable reports whether users can allow the request. They cannot if the request does not describe its action, or if
// a part of the request is missing.
func (a ApprovalAsked) Allowable() bool {
	said := strings.TrimSpace(a.Title+a.Detail) != "" || len(a.Changes) > 0 || a.SaysMore()
	return said && a.Missing == ""
}
