package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ownAgents are the agents that ductor knows without being told of them.
func ownAgents() []string { return []string{agentClaude, agentCodex, agentGemini, agentCopilot} }

// permissionModes are the words of permissions.mode.
func permissionModes() []string { return wordsOf(Permissions{}, "mode") }

// wordsOf are the words that a setting of a table may be.
func wordsOf(table any, name string) []string {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(table)) {
		if f.Tag.Get("toml") == name {
			return strings.Split(f.Tag.Get("is"), "|")
		}
	}
	return nil
}

// hold checks what the tags of a table say of its settings, those of tables below it included: "1..10" for a number or a
// duration, where 0 is a fraction too, and "a|b" for a word or a list of different words. Tables with names of the owner's are
// left out, and those with checks of their own.
func (p *problems) hold(prefix string, table reflect.Value) {
	for _, f := range reflect.VisibleFields(table.Type()) {
		v, key := table.FieldByIndex(f.Index), prefix+f.Tag.Get("toml")
		is := f.Tag.Get("is")
		switch {
		case f.Anonymous || f.Type == reflect.TypeFor[Sandbox]() || f.Type == reflect.TypeFor[Heartbeat]():
		case f.Type.Kind() == reflect.Struct:
			p.hold(key+".", v)
		case strings.Contains(is, ".."):
			least, top, _ := strings.Cut(is, "..")
			p.within(key, v.Interface(), least, top)
		case is != "" && f.Type.Kind() == reflect.Slice:
			p.words(key, v.Interface().([]string), strings.Split(is, "|"))
		case is != "":
			p.word(key, v.String(), strings.Split(is, "|")...)
		}
	}
}

// within checks that a value lies between two bounds.
func (p *problems) within(key string, value any, least, top string) {
	const text = "%v is out of bounds; it may be %v to %v"
	switch v := value.(type) {
	case int:
		if v < int(number(least)) || v > int(number(top)) {
			p.add(key, text, v, least, top)
		}
	case float64:
		// Written so that a number that is none fails too.
		if v != 0 && !(v >= number(least) && v <= number(top)) {
			p.add(key, text, v, least, number(top))
		}
	case time.Duration:
		if v < duration(least) || v > duration(top) {
			p.add(key, text, v, short(duration(least)), short(duration(top)))
		}
	}
}

// number and duration read the bounds of tags, which a test checks.
func number(bound string) float64 {
	n, _ := strconv.ParseFloat(bound, 64)
	return n
}

func duration(bound string) time.Duration {
	d, _ := time.ParseDuration(bound)
	return d
}

func (p *problems) word(key, value string, choices ...string) {
	if !slices.Contains(choices, value) {
		p.add(key, "%s", oneOf(value, choices))
	}
}

// words is word for a list, which has none of them twice.
func (p *problems) words(key string, list, choices []string) {
	for i, w := range list {
		p.word(key, w, choices...)
		if slices.Contains(choices, w) && slices.Contains(list[:i], w) {
			p.add(key, "%q is there twice", w)
		}
	}
}

// checkTogether checks settings whose bounds are others.
func (c *Config) checkTogether(p *problems) {
	if at := c.Sessions.DailyReset; at != "" {
		if _, err := time.Parse("15:04", at); err != nil {
			p.add("sessions.daily_reset", `%q should be a time of day such as "04:00", or empty for never`, at)
		}
	}
	if c.Stream.MaxChars < c.Stream.MinChars {
		p.add("stream.max_chars", "%d is less than min_chars, which is %d", c.Stream.MaxChars, c.Stream.MinChars)
	}
	if a := c.Agents; a.StaleAfter <= a.TurnTimeout {
		p.add("agents.stale_after", "%s must be longer than turn_timeout, which is %s: else running turns count as stale", short(a.StaleAfter), short(a.TurnTimeout))
	}
}

// short drops the zero units that Duration.String writes.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
