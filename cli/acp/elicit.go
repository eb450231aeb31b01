package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ductor/cli"
)

// Limits of a form. ductor asks the user for each field as a question, and rejects forms beyond a limit.
const (
	maxFields  = 20
	maxChoices = 15       // choices of one field
	maxMessage = 150      // characters of the message above a URL
	maxURL     = 700      // characters
	maxHost    = 48       // bytes; a longer host would be shortened where users see it
	maxForm    = 64 << 10 // bytes of a request with a form
)

// form is a request of the agent to the user: to enter values, or to visit a web page. The protocol calls such a
// request an elicitation.
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
	hint string // explains to the user why the previous answer was rejected
}

// field is a value in a form that the user enters or chooses.
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
	} `json:"items"` // the choices of a field of type "array"
	optional bool
}

// formChoice is a possible value of a field. A nil value omits the field from the reply.
type formChoice struct {
	Value any    `json:"const"`
	Label string `json:"title"`
}

// fields are the fields of a form in the agent's order.
type fields []field

// UnmarshalJSON decodes a JSON object and keeps the order of its members.
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

// readForm parses the form in a request. It returns an error if ductor cannot show the form completely as questions.
func readForm(raw json.RawMessage) (*form, error) {
	if len(raw) > maxForm {
		return nil, fmt.Errorf("the form has more than %d bytes", maxForm)
	}
	var f form
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	switch f.Mode {
	case "form":
		return &f, f.checkFields()
	case "url":
		f.Schema.Properties = nil
		return &f, checkVisit(f.URL)
	}
	return nil, fmt.Errorf("the mode %q is unknown", f.Mode)
}

// checkFields returns an error if ductor cannot show a field as a question. It also records which fields are optional.
func (f *form) checkFields() error {
	all := f.Schema.Properties
	if len(all) > maxFields {
		return fmt.Errorf("the form has more than %d fields", maxFields)
	}
	for i, one := range all {
		all[i].optional = !slices.Contains(f.Schema.Required, one.name)
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, one.Type) {
			return fmt.Errorf("a field has the unknown type %q", one.Type)
		}
		if len(one.Enum)+len(one.OneOf)+len(one.Items.Enum)+len(one.Items.AnyOf) > maxChoices {
			return fmt.Errorf("the field %q has more than %d choices", one.label(), maxChoices)
		}
	}
	return nil
}

// checkVisit checks the URL of a page that the user should visit. It returns an error if users could misread the host.
func checkVisit(address string) error {
	unusual := func(r rune) bool { return r <= ' ' || r > '~' }
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return err
	case len(address) > maxURL || strings.ContainsFunc(address, unusual):
		return fmt.Errorf("the address is too long, or it has characters besides printable ASCII")
	case u.Scheme != "http" && u.Scheme != "https", u.User != nil:
		return fmt.Errorf("the address must begin with http:// or https://, without a user name")
	case u.Host == "" || len(u.Host) > maxHost || !plainHost().MatchString(u.Host):
		return fmt.Errorf("the host of the address is missing, unusual or longer than %d bytes", maxHost)
	}
	return nil
}

var plainHost = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9.:\[\]_-]+$`) })

// checkLabels returns an error if a choice has no label, or two choices of a field have the same label.
func (f *form) checkLabels(req cli.Request) error {
	for _, one := range f.Schema.Properties {
		seen := map[string]bool{"": true}
		for _, c := range one.choices(req) {
			label := cli.OneLine(c.Label, maxLabel)
			if seen[label] {
				return fmt.Errorf("the field %q has an empty label, or %q twice", one.label(), label)
			}
			seen[label] = true
		}
	}
	return nil
}

// questions converts the form to questions for the user, one for each field.
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

// isTyped reports whether the user types the value of the field, instead of choosing it.
func (f field) isTyped() bool {
	return f.Type == "number" || f.Type == "integer" || f.Type == "string" && len(f.Enum)+len(f.OneOf) == 0
}

// choices returns the values of a field that users choose with buttons.
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

// reply returns the reply to the agent for a user's decision. It returns nil if an answer is invalid for its field, and
// explains the error in f.hint.
func (f *form) reply(req cli.Request, d cli.Decision) any {
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

// parse converts a user's answer to a value for the agent. It returns false for an invalid number. The agent checks all
// other values.
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
