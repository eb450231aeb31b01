package clitest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"ductor/cli"
)

// Inputs generates JSON objects like the input of a request for approval. They contain some of the keys, and some keys
// that no provider knows. All texts and numbers are different.
func Inputs(keys ...string) *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		return drawObject(t, keys, 2)
	})
}

func drawObject(t *rapid.T, keys []string, depth int) json.RawMessage {
	parts := []string{}
	for range rapid.IntRange(1, 5).Draw(t, "fields") {
		key := rapid.StringMatching(`[a-z]{3,6}`).Draw(t, "key")
		if len(keys) > 0 && rapid.Bool().Draw(t, "known") {
			key = rapid.SampledFrom(keys).Draw(t, "known key")
		}
		parts = append(parts, jsonOf(key)+":"+string(drawValue(t, keys, depth)))
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

func drawValue(t *rapid.T, keys []string, depth int) json.RawMessage {
	word := rapid.StringMatching(`[a-z]{8,12}`)
	switch rapid.SampledFrom([]string{"text", "text", "lines", "hidden", "long", "number", "bool", "null", "list",
		"object"}).Draw(t, "kind") {
	case "lines":
		return json.RawMessage(jsonOf(word.Draw(t, "first") + strings.Repeat("\n",
			rapid.IntRange(1, 99).Draw(t, "newlines")) + word.Draw(t, "last")))
	case "hidden":
		return json.RawMessage(jsonOf(word.Draw(t, "before") + "\u202e\u200b" + word.Draw(t, "after")))
	case "long":
		return json.RawMessage(jsonOf(word.Draw(t, "head") + strings.Repeat("x",
			rapid.IntRange(100, 900).Draw(t, "length")) + word.Draw(t, "tail")))
	case "number":
		return json.RawMessage(rapid.StringMatching(`[1-9][0-9]{7,9}`).Draw(t, "number"))
	case "bool":
		return json.RawMessage(rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool"))
	case "null":
		return json.RawMessage("null")
	case "list":
		if depth > 0 {
			return json.RawMessage("[" + string(drawValue(t, keys, 0)) + "," + string(drawValue(t, keys, depth-1)) +
				"]")
		}
	case "object":
		if depth > 0 {
			return drawObject(t, keys, depth-1)
		}
	}
	return json.RawMessage(jsonOf(word.Draw(t, "text")))
}

func jsonOf(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Protocol lists fields that users need not see. The fields identify the request, or list possible answers that ductor
// does not offer. Each entry consists of an agent's name and the name of a field.
var Protocol = []string{
	"acp sessionId", "acp options", "acp toolCall.toolCallId", "acp toolCall.status", "acp toolCall.kind",
	"acp toolCall.locations", "acp toolCall.content",
	"acp toolCall.content.type", "acp toolCall.content.content.type", "acp toolCall.content._meta.kind",
	"acp toolCall.rawInput.files.additions", "acp toolCall.rawInput.files.deletions", // users see the diff itself
	"codex threadId", "codex turnId", "codex itemId", "codex startedAtMs", "codex approvalId", "codex elicitationId",
	"codex availableDecisions",
	"codex commandActions", "codex proposedExecpolicyAmendment", "codex proposedNetworkPolicyAmendments",
	"codex _meta.persist", "codex _meta.tool_description",
	"copilot toolCallId", "copilot canOfferSessionApproval", "copilot commands", "copilot commandSegments",
	"copilot assistedApproval",
	"copilot sessionId", "copilot requestId", "copilot actions", "copilot recommendedAction",
}

// Hidden returns the fields of a request that a provider wrongly hides from users. A field is hidden if its weight is
// cli.LabelField. Only fields in Protocol, empty fields and the working directory may be hidden.
func Hidden(agent string, a cli.ApprovalAsked, dir string) (hidden []string) {
	for _, f := range a.Fields {
		name := agent + " " + index.ReplaceAllString(f.Name, "")
		of := func(p string) bool { return name == p || strings.HasPrefix(name, p+".") }
		empty := slices.Contains([]string{"null", "", "{}", "[]", "false"}, f.Value)
		if f.Weight == cli.LabelField && !empty && !slices.ContainsFunc(Protocol, of) &&
			cli.Absolute(dir, f.Value) != dir {
			hidden = append(hidden, f.Name+": "+f.Value)
		}
	}
	return hidden
}

var index = regexp.MustCompile(`\[\d+\]`)

// Shown returns the texts of an approval that users see.
func Shown(a cli.ApprovalAsked) string {
	parts := []string{a.Tool, a.Title, a.Detail, a.Reason}
	for _, c := range a.Changes {
		parts = append(parts, c.Path, c.Diff)
	}
	for _, f := range a.Fields {
		parts = append(parts, f.Name+": "+f.Value)
	}
	return strings.Join(parts, "\n")
}

var lastKey = regexp.MustCompile(`[^.\[]*(\[\d+\])?$`)

// Unshown returns the values of an input that are missing in text. It ignores white space. If convert is not nil,
// Unshown searches for the result of convert instead of the value.
func Unshown(input json.RawMessage, text string, convert func(string) string) (missing []string) {
	text = bare(text)
	for _, l := range cli.Leaves(input) {
		// The text must show a value such as true or null together with its key.
		want := []string{lastKey.FindString(l.Name) + ":" + l.Value}
		if !l.Unset && l.Value != "true" {
			want = strings.Split(l.Value, "\n")
		}
		for _, line := range want {
			if convert != nil {
				line = convert(line)
			}
			if !strings.Contains(text, bare(line)) {
				missing = append(missing, l.Name+": "+line)
			}
		}
	}
	return missing
}

func bare(s string) string { return strings.ReplaceAll(strings.Join(strings.Fields(s), ""), "⏎", "") }

// WithEffect sets the Effect of an ApprovalAsked, for an agent whose shell tool is called Bash. It returns other events
// unchanged.
func WithEffect(ev cli.Event, dir string) cli.Event {
	if a, ok := ev.(cli.ApprovalAsked); ok {
		a.Effect = cli.EffectOf(a.Input, dir, nil)
		if a.Tool == "Bash" {
			a.Effect.Shell = cli.ShellUseFor(a.Reason)
		}
		return a
	}
	return ev
}

// EffectLine formats an effect as one line. It shows the directory relative to dir.
func EffectLine(e cli.Effect, dir string) string {
	return strings.TrimPrefix(e.Dir, dir) + fmt.Sprintf("|%s|%s|%s|%s", e.Command, e.Read, e.Shell, e.Reach)
}
