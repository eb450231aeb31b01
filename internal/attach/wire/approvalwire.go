package wire

import (
	"encoding/json"
	"time"
)

// ApprovalState is the state of an approval.
type ApprovalState string

// The states of an approval. An approval starts as ApprovalOpen and changes its state once.
const (
	ApprovalOpen      ApprovalState = "open"
	ApprovalAllowed   ApprovalState = "allowed"
	ApprovalDenied    ApprovalState = "denied"
	ApprovalAnswered  ApprovalState = "answered"
	ApprovalWithdrawn ApprovalState = "withdrawn" // the agent no longer waits for the decision
	ApprovalExpired   ApprovalState = "expired"   // denied, because no user decided in time
)

// Choice is a decision on an approval.
type Choice string

// The choices.
const (
	AllowOnce    Choice = "once"
	AllowSession Choice = "session" // in this session, allow all requests that the rule covers
	AllowPattern Choice = "pattern" // allow all requests that the rule covers, until a user revokes the rule
	AllowEdits   Choice = "edits"   // allow the request and all later edits in the working directory
	Deny         Choice = "deny"
	Answer       Choice = "answer" // answer the questions
)

// Offer is a choice that an approval offers.
type Offer struct {
	Choice Choice `json:"choice"`
	Rule   string `json:"rule,omitempty"` // set for AllowSession and AllowPattern; the client must show it
}

// Approval is an agent's request for permission, or a set of questions from an agent. ductor sends an Approval when the
// agent makes the request, when the request changes, and when a user decides in a terminal or in the chat. A client
// must show every field of a request before it offers a choice other than Deny.
type Approval struct {
	ID        string     `json:"id"`
	Turn      string     `json:"turn"`
	Agent     string     `json:"agent"`
	Dir       string     `json:"dir,omitempty"`
	Sandbox   string     `json:"sandbox,omitempty"` // sandbox of the turn; empty for this machine
	Same      int        `json:"same"`              // number of identical requests that this approval decides
	Asked     time.Time  `json:"asked"`
	Expires   time.Time  `json:"expires,omitzero"`
	Asks      *Asks      `json:"asks,omitempty"`      // the requested permission; nil for questions
	Questions []Question `json:"questions,omitempty"` // empty if the agent requests permission
	Choices   []Offer    `json:"choices,omitempty"`   // empty after the decision
	Decision
}

// Decision describes the state of an approval, and how it was decided.
type Decision struct {
	State    ApprovalState `json:"state"`
	Terminal bool          `json:"terminal,omitempty"` // the decision was made in a terminal
	Chat     bool          `json:"chat,omitempty"`     // the decision was made in the chat
	Ruled    string        `json:"ruled,omitempty"`    // rule that decided, or that the user created with this decision
	Reason   string        `json:"reason,omitempty"`
	Answers  [][]string    `json:"answers,omitempty"` // answers to all questions except secret ones
	Decided  time.Time     `json:"decided,omitzero"`
}

// Asks is an agent's request for permission.
type Asks struct {
	Tool    string          `json:"tool"`
	Title   string          `json:"title,omitempty"`  // the exact command or path
	Detail  string          `json:"detail,omitempty"` // the complete command or plan; empty if Title contains it
	Changes []Change        `json:"changes,omitempty"`
	Fields  []Field         `json:"fields,omitempty"` // parts that Title and Detail do not contain
	Links   []Link          `json:"links,omitempty"`
	Reason  string          `json:"reason,omitempty"`  // reason in the agent's words
	Missing string          `json:"missing,omitempty"` // a part that cannot be shown; if set, offer only Deny
	Input   json.RawMessage `json:"input,omitempty"`   // the complete input from the agent
}

// Field is a part of a request.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Wider bool   `json:"wider,omitempty"` // the field requests additional rights; clients show it first
	Label bool   `json:"label,omitempty"` // an ID of the request, or a usual value; clients show it last
}

// Link is a path in a request that is or contains a symbolic link.
type Link struct {
	Path    string `json:"path"`
	Real    string `json:"real"`
	Outside bool   `json:"outside,omitempty"` // the target is outside of the working directory
}

// Question is a question of an agent. An approval may have several.
type Question struct {
	Header  string   `json:"header,omitempty"`
	Text    string   `json:"text"`
	Options []Option `json:"options,omitempty"`
	Multi   bool     `json:"multi,omitempty"`  // the user may choose several options
	Free    bool     `json:"free,omitempty"`   // the user may answer in their own words; always set without options
	Secret  bool     `json:"secret,omitempty"` // do not show the answer while the user types it
}

// Option is a possible answer.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}
