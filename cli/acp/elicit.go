package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ductor/cli"
)

// Bounds of a form, so that questions show it whole.
const (
	maxFields  = 20
	maxMessage = 150 // characters above an address
	maxURL     = 700 // characters
)

// form is an agent's request for values of the user, or for a visit of a web page.
type form struct {
	CallID  string `json:"toolCallId"`
	Mode    string `json:"mode"` // form or url
	Message string `json:"message"`
	VisitID string `json:"elicitationId"`
	URL     string `json:"url"`
	Schema  struct {
		Properties fields   `json:"properties"`
		Required   []string `json:"required"`
	} `json:"requestedSchema"`
	hint string // why the last answer did not fit
}

// field is a value that a form asks for.
type field struct {
	name        string
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	Enum        []string     `json:"enum"`
	OneOf       []formChoice `json:"oneOf"`
	Items       struct {
		Enum  []string     `json:"enum"`
		AnyOf []formChoice `json:"anyOf"`
	} `json:"items"` // of an array
	optional bool
}

// formChoice is a possible value of a field; nil leaves the field out.
type formChoice struct {
	Value any    `json:"const"`
	Label string `json:"title"`
}

// fields are the fields of a form in the agent's order.
type fields []field

// UnmarshalJSON accepts an object.
func (f *fields) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	_, err := d.Token()
	for err == nil && d.More() {
		name, _ := d.Token()
		*f = append(*f, field{name: fmt.Sprint(name)})
		err = d.Decode(&(*f)[len(*f)-1])
	}
	return err
}

// readForm returns the form in a request. It returns an error if questions cannot show the form whole.
func readForm(raw json.RawMessage) (*form, error) {
	var f form
	err := json.Unmarshal(raw, &f)
	all := f.Schema.Properties
	for i, one := range all {
		all[i].optional = !slices.Contains(f.Schema.Required, one.name)
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, one.Type) {
			err = fmt.Errorf("a field has the unknown type %q", one.Type)
		}
	}
	switch u, bad := url.Parse(f.URL); {
	case err != nil, f.Mode == "form" && len(all) <= maxFields:
	case f.Mode == "url" && bad == nil && u.Host != "" && len(f.URL) <= maxURL && strings.HasPrefix(u.Scheme, "http"):
		f.Schema.Properties = nil
	default:
		err = fmt.Errorf("no user can be shown all of it")
	}
	return &f, err
}

// questions returns the form as questions: one for each field.
func (f *form) questions(req cli.Request) (list []cli.Question) {
	in := req.Lang.Printer()
	for i, one := range f.Schema.Properties {
		q := cli.Question{Header: one.label(), Text: one.Description, Multi: one.Type == "array", Free: one.isTyped()}
		if q.Text == "" {
			q.Header, q.Text = "", q.Header
		}
		if i == 0 {
			q.Text = strings.TrimSpace(f.hint + "\n\n" + f.Message + "\n\n" + q.Text)
		}
		for _, c := range one.choices(req) {
			q.Options = append(q.Options, cli.Option{Label: c.Label})
		}
		list = append(list, q)
	}
	if u, err := url.Parse(f.URL); f.Mode == "url" && err == nil {
		options := []cli.Option{{Label: in.Text("approval.form-done")}, {Label: in.Text("approval.form-decline")}}
		text := cli.Shorten(f.Message, maxMessage) + "\n\n" + f.URL
		return []cli.Question{{Header: u.Host, Text: text, Options: options}}
	}
	if list == nil {
		list = []cli.Question{{Text: f.Message, Options: []cli.Option{{Label: in.Text("approval.form-yes")}}}}
	}
	return list
}

func (f field) label() string { return cmp.Or(f.Title, f.name) }

// isTyped reports whether the user writes the value of the field.
func (f field) isTyped() bool {
	return f.Type == "number" || f.Type == "integer" || f.Type == "string" && len(f.Enum)+len(f.OneOf) == 0
}

// choices returns the values of a field that have a button.
func (f field) choices(req cli.Request) []formChoice {
	in := req.Lang.Printer()
	list := slices.Concat(f.OneOf, f.Items.AnyOf)
	for _, value := range slices.Concat(f.Enum, f.Items.Enum) {
		list = append(list, formChoice{value, value})
	}
	if f.Type == "boolean" {
		list = []formChoice{{true, in.Text("approval.form-yes")}, {false, in.Text("approval.form-no")}}
	}
	if f.optional {
		list = append(list, formChoice{nil, in.Text("approval.form-skip")})
	}
	return list
}

// reply returns the reply for a user's decision, or nil if an answer does not fit its field.
func (f *form) reply(req cli.Request, d cli.Decision) map[string]any {
	questions, content := f.questions(req), map[string]any{}
	if !d.Allow || len(d.Answers) != len(questions) ||
		f.Mode == "url" && !slices.Equal(d.Answers[0], []string{questions[0].Options[0].Label}) {
		return map[string]any{"action": "decline"}
	}
	for i, one := range f.Schema.Properties {
		values := []any{}
		for _, text := range d.Answers[i] {
			value, fits := one.parse(req, text)
			if !fits {
				f.hint = req.Lang.Printer().Text("approval.form-unfit", cli.OneLine(text, maxTitle), one.label())
				return nil
			}
			values = append(values, value)
		}
		switch {
		case slices.Contains(values, nil):
		case one.Type == "array":
			content[one.name] = values
		case len(values) > 0:
			content[one.name] = values[0]
		}
	}
	return map[string]any{"action": "accept", "content": content}
}

// parse returns the value of an answer. It reports whether a number is one; the agent checks all else.
func (f field) parse(req cli.Request, text string) (value any, fits bool) {
	for _, c := range f.choices(req) {
		if c.Label == text {
			return c.Value, true
		}
	}
	if f.Type != "number" && f.Type != "integer" {
		return text, true
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) && (f.Type == "number" || n == math.Trunc(n))
}
