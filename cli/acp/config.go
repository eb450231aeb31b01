package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"ductor/cli"
)

// This file handles the options that an agent offers for a session, such as its model, its mode and its effort. Older
// agents have no options. They offer modes and models through separate methods of the protocol.

// Limits for an agent's options.
const (
	maxValues = 10_000 // values of one option; a menu cannot show more
	maxID     = 1000   // bytes of an ID
	maxLabel  = 200    // bytes of a name or a description
)

// purpose is what ductor uses an option for. Its values are the protocol's categories of options.
type purpose string

const (
	forModel  purpose = "model"
	forMode   purpose = "mode"
	forEffort purpose = "thought_level"
)

// ids returns the known IDs of options for this purpose. ductor uses them for an option that has no category.
func (p purpose) ids() []string {
	if p == forEffort {
		return []string{"effort", "thought_level", "reasoning_effort", "thinking"}
	}
	return []string{string(p)}
}

type configOption struct {
	ID       string       `json:"id"`
	Category purpose      `json:"category"`
	Type     string       `json:"type"` // optionSelect or optionBoolean
	Current  configValue  `json:"currentValue"`
	Values   configValues `json:"options"`
}

const (
	optionSelect  = "select"
	optionBoolean = "boolean"
)

// configOptions are all options of a session, the most important first. Decoding omits options that are unreadable or
// of an unknown type.
type configOptions []configOption

// UnmarshalJSON implements json.Unmarshaler.
func (c *configOptions) UnmarshalJSON(raw []byte) error {
	list := listOf(raw)
	if list != nil {
		*c = configOptions{}
	}
	for _, one := range list {
		var o configOption
		if json.Unmarshal(one, &o) == nil && o.ID != "" && (o.Type == optionSelect || o.Type == optionBoolean) {
			*c = append(*c, o)
		}
	}
	return nil
}

// listOf returns the elements of a JSON list, or nil if raw is not a list.
func listOf(raw []byte) (list []json.RawMessage) {
	_ = json.Unmarshal(raw, &list)
	return list
}

// configValue is the value of an option. A boolean option has the value "true" or "false".
type configValue string

// UnmarshalJSON implements json.Unmarshaler.
func (v *configValue) UnmarshalJSON(raw []byte) error {
	var text string
	var on bool
	switch {
	case json.Unmarshal(raw, &text) == nil:
		*v = configValue(text)
	case json.Unmarshal(raw, &on) == nil:
		*v = configValue(strconv.FormatBool(on))
	default:
		return fmt.Errorf("the value %s is neither a text nor a boolean", cli.Shorten(string(raw), 100))
	}
	return nil
}

// configValues are the possible values of an option. Decoding flattens groups of values, and accepts the field names of
// older agents.
type configValues []offer

// offer is a possible value of an option, such as a model or a mode.
type offer struct {
	ID, Name, Description string
}

// UnmarshalJSON implements json.Unmarshaler. It omits values whose ID is longer than maxID. It stores at most
// maxValues+1 values, so that callers can detect longer lists.
func (v *configValues) UnmarshalJSON(raw []byte) error {
	for _, one := range listOf(raw) {
		var value struct {
			Value       string       `json:"value"`
			Mode        string       `json:"id"`
			Model       string       `json:"modelId"`
			Name        string       `json:"name"`
			Description string       `json:"description"`
			Group       configValues `json:"options"`
		}
		if json.Unmarshal(one, &value) != nil {
			continue
		}
		id := cmp.Or(value.Value, value.Mode, value.Model)
		if value.Group == nil && id != "" && len(id) <= maxID {
			name, text := cli.OneLine(value.Name, maxLabel), cli.OneLine(value.Description, maxLabel)
			value.Group = configValues{{id, name, text}}
		}
		*v = append(*v, value.Group...)
		*v = (*v)[:min(len(*v), maxValues+1)]
	}
	return nil
}

// choice contains the possible values of a session's setting, and its current value.
type choice struct {
	option   string // ID of the option; empty if an older agent has a separate method for the setting
	values   []offer
	current  string
	original string // value that the agent chose by itself
}

func (c choice) offers(value string) bool {
	return slices.ContainsFunc(c.values, func(v offer) bool { return v.ID == value })
}

func (c choice) ids() []string {
	ids := []string{}
	for _, v := range c.values {
		ids = append(ids, v.ID)
	}
	return ids
}

// forPurpose returns the option for a purpose, or nil if the agent offers none.
func (c configOptions) forPurpose(p purpose) *configOption {
	for _, fits := range []func(configOption) bool{
		// Cline assigns the category "model" to its model and to its provider. The ID of the option distinguishes them.
		func(o configOption) bool { return o.Category == p && slices.Contains(p.ids(), o.ID) },
		func(o configOption) bool { return o.Category == p },
		func(o configOption) bool { return o.Category == "" && slices.Contains(p.ids(), o.ID) },
	} {
		if i := slices.IndexFunc(c, func(o configOption) bool { return o.Type == optionSelect && fits(o) }); i >= 0 {
			return &c[i]
		}
	}
	return nil
}

// configure records the options that the agent sent for the session. It does nothing if the agent sent none (nil). The
// caller holds s.mu.
func (s *session) configure(all configOptions) {
	if all == nil {
		return
	}
	s.offers.options = all
	before := s.offers.model.current
	for p, c := range s.offers.choices() {
		option := all.forPurpose(p)
		switch {
		case option != nil && c.option == "": // the option is new; prefer it to a list, which codex-acp also sends
			*c = choice{option.ID, option.Values, string(option.Current), string(option.Current)}
		case option != nil:
			*c = choice{option.ID, option.Values, string(option.Current), cmp.Or(c.original, string(option.Current))}
		case c.option != "": // the agent no longer offers the option, for example because the model has changed
			*c = choice{original: c.original}
		}
	}
	if s.offers.model.current != before && !s.offers.effortSet { // the new model has another default effort
		s.offers.effort.original = s.offers.effort.current
	}
	s.process.provider.learn(s.offers)
}

// choices returns the settings that ductor can change.
func (o *offers) choices() map[purpose]*choice {
	return map[purpose]*choice{forModel: &o.model, forMode: &o.mode, forEffort: &o.effort}
}

// choose changes the setting for a purpose to value. It does nothing if value is empty or is the current value. For an
// older agent, choose calls a separate method for each setting.
func (s *session) choose(ctx context.Context, p purpose, value string) error {
	now := s.offersNow()
	c := *now.choices()[p]
	if value == "" || value == c.current {
		return nil
	}
	if p == forEffort {
		s.mu.Lock()
		s.offers.effortSet = s.offers.effortSet || value != c.original
		s.mu.Unlock()
	}
	if c.option != "" {
		return s.set(ctx, c.option, value)
	}
	method, params := methodSetModel, sessionParams{SessionID: string(s.id), ModelID: value}
	if p == forMode {
		method, params = methodSetMode, sessionParams{SessionID: string(s.id), ModeID: value}
	}
	if err := s.process.call(ctx, method, params, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offers.choices()[p].current = value
	return nil
}

type optionParams struct {
	SessionID string `json:"sessionId"`
	OptionID  string `json:"configId"`
	Type      string `json:"type,omitempty"` // optionBoolean; empty for an option of type optionSelect
	Value     any    `json:"value"`
}

// set changes the value of an option. It returns an error if the agent's reply does not confirm the value.
func (s *session) set(ctx context.Context, id, value string) error {
	all := s.offersNow().options
	agent := s.options().Agent
	i := slices.IndexFunc(all, func(o configOption) bool { return o.ID == id })
	if i < 0 {
		return cli.Failf(cli.Refused, agent, "it offers no option %q", id)
	}
	params := optionParams{SessionID: string(s.id), OptionID: id, Value: value}
	if all[i].Type == optionBoolean {
		params.Type, params.Value = optionBoolean, value == "true"
	}
	var got struct {
		Options configOptions `json:"configOptions"`
	}
	if err := s.process.call(ctx, methodSetOption, params, &got); err != nil {
		return err
	}
	if got.Options == nil { // the agent confirms without listing the options
		got.Options = slices.Clone(all)
		got.Options[i].Current = configValue(value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configure(got.Options)
	switch i := slices.IndexFunc(got.Options, func(o configOption) bool { return o.ID == id }); {
	case i < 0:
		return cli.Failf(cli.Refused, agent, "it was told to use %q for %s, and no longer names it", value, id)
	case got.Options[i].Current != configValue(value):
		return cli.Failf(cli.Refused, agent, "it was told to use %q for %s, and uses %q", value, id,
			got.Options[i].Current)
	}
	return nil
}
