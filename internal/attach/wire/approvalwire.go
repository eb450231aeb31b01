package wire

import (
	"encoding/json"
	"time"
)

// ApprovalState is the state of an approval.
type ApprovalState string

// The states of an approval. Only an open one changes, and only once.
const (
	ApprovalOpen      ApprovalState = "open"
	ApprovalAllowed   ApprovalState = "allowed"
	ApprovalDenied    ApprovalState = "denied"
	ApprovalAnswered  ApprovalState = "answered"
	ApprovalWithdrawn ApprovalState = "withdrawn" // the agent no longer waits
	ApprovalExpired   ApprovalState = "expired"   // no user decided in time, which denied it
)

// Choice is a decision on an approval.
type Choice string

// The choices.
const (
	AllowOnce    Choice = "once"
	AllowSession Choice = "session" // and whatever the rule covers, as long as the session is used
	AllowPattern Choice = "pattern" // and whatever the rule covers, until a user revokes it
	AllowEdits   Choice = "edits"   // and all edits in the working directory from now on
	Deny         Choice = "deny"
	Answer       Choice = "answer" // the questions
)

// Offer is a choice that an approval offers.
type Offer struct {
	Choice Choice `json:"choice"`
	Rule   string `json:"rule,omitempty"` // that AllowSession and AllowPattern create; the user must see it first
}

// Approval is a request or are questions of an agent. It comes when it is new, when it changes, and when it is decided, at
// whichever end. A client shows every field of a request before it accepts a choice other than Deny.
type Approval struct {
	ID        string     `json:"id"`
	Turn      string     `json:"turn"`
	Agent     string     `json:"agent"`
	Dir       string     `json:"dir,omitempty"`
	Sandbox   string     `json:"sandbox,omitempty"` // where the turn runs; empty is this machine
	Same      int        `json:"same"`              // identical requests that it stands for
	Asked     time.Time  `json:"asked"`
	Expires   time.Time  `json:"expires,omitzero"`
	Asks      *Asks      `json:"asks,omitempty"`      // the request; nil for questions
	Questions []Question `json:"questions,omitempty"` // otherwise
	Choices   []Offer    `json:"choices,omitempty"`   // empty once it is decided
	Decision
}

// Decision is the state of an approval, and the way it was decided.
type Decision struct {
	State    ApprovalState `json:"state"`
	Terminal bool          `json:"terminal,omitempty"` // decided in a terminal
	Chat     bool          `json:"chat,omitempty"`     // decided in the chat
	Ruled    string        `json:"ruled,omitempty"`    // the rule that decided, or that the decision created
	Reason   string        `json:"reason,omitempty"`
	Answers  [][]string    `json:"answers,omitempty"` // never of secret questions
	Decided  time.Time     `json:"decided,omitzero"`
}

// Asks is an agent's request to do something.
type Asks struct {
	Tool    string          `json:"tool"`
	Title   string          `json:"title,omitempty"`  // the exact command, the path
	Detail  string          `json:"detail,omitempty"` // the whole command or plan; empty if Title has all of it
	Changes []Change        `json:"changes,omitempty"`
	Fields  []Field         `json:"fields,omitempty"` // the parts that are not contained above
	Links   []Link          `json:"links,omitempty"`
	Reason  string          `json:"reason,omitempty"`  // in the agent's words
	Missing string          `json:"missing,omitempty"` // a part that is not shown, so that it can only be denied
	Input   json.RawMessage `json:"input,omitempty"`   // all of it, as the agent sent it
}

// Field is a further part of a request.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Wider bool   `json:"wider,omitempty"` // it asks for more than usual: show it first
	Label bool   `json:"label,omitempty"` // it only identifies the request, or has its usual value
}

// Link is a path of a request that leads elsewhere.
type Link struct {
	Path    string `json:"path"`
	Real    string `json:"real"`
	Outside bool   `json:"outside,omitempty"` // of the working directory
}

// Question is a question of an agent. An approval may have several.
type Question struct {
	Header  string   `json:"header,omitempty"`
	Text    string   `json:"text"`
	Options []Option `json:"options,omitempty"`
	Multi   bool     `json:"multi,omitempty"`  // several options may be chosen
	Free    bool     `json:"free,omitempty"`   // own words are an answer too; so they are without options
	Secret  bool     `json:"secret,omitempty"` // the answer must not be shown while it is typed
}

// Option is a possible answer.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}
