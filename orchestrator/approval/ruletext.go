package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// plainCommand reports whether every shell would parse s as one command of plain words: no quotes, variables, patterns,
// redirections or second command.
func plainCommand(s string) bool {
	if s == "" {
		return false
	}
	for word := range strings.SplitSeq(s, " ") {
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !plainRune(r) }) {
			return false
		}
	}
	return true
}

func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@+,", r)
}

// plainWords reports whether the words after the head of a plain command may be allowed without asking. No word may be
// an option, a path out of the working directory, a hidden or secret file (by its name or by a link), or the name of a
// host.
func plainWords(head, rest string, links []cli.Link) bool {
	// of a project, such as "test:unit"; elsewhere host:path, or one branch onto another
	scripts := strings.HasSuffix(head, " run")
	return !slices.ContainsFunc(strings.Split(rest, " "), func(word string) bool { return !plainWord(word, scripts) }) && staysInside(links)
}

func plainWord(word string, script bool) bool {
	return word != "" && !strings.ContainsAny(word[:1], "-/:@+~") && !strings.Contains(word, "=") && !strings.Contains(word, ":/") &&
		(script || !strings.Contains(word, ":")) && !private(word)
}

// staysInside reports whether no link leads out of the working directory, or to a hidden or secret file.
func staysInside(links []cli.Link) bool {
	return !slices.ContainsFunc(links, func(l cli.Link) bool { return l.Outside || private(l.Real) })
}

// private reports whether a path leads up, is hidden or below a hidden directory, or has the name of a file with
// secrets.
func private(path string) bool {
	parts := strings.Split(path, "/")
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") && part != "." && part != "..." } // go test ./...
	return slices.ContainsFunc(parts, hidden) || secrets.IsFile(parts[len(parts)-1])
}

// matchPrefix reports whether a command consists of prefix and plain words.
func matchPrefix(prefix, command string, links []cli.Link) bool {
	if !slices.Contains(openEnded(), prefix) || !plainCommand(command) {
		return false
	}
	rest, ok := strings.CutPrefix(command, prefix)
	if !ok || rest == "" {
		return ok
	}
	rest, ok = strings.CutPrefix(rest, " ")
	return ok && plainWords(prefix, rest, links)
}

// volatile lists the input fields that identify one request and do not affect its action.
func volatile() []string {
	return []string{
		"toolCallId", "tool_call_id", "tool_use_id", "toolUseId", "callId", "call_id", "itemId", "threadId", "turnId",
		"approvalId", "requestId", "startedAtMs", "availableDecisions", "proposedExecpolicyAmendment", "commandActions",
	}
}

// fieldsOf returns the fields of an input that affect its action. It returns false if the input is not an object or
// repeats a field.
func fieldsOf(input json.RawMessage) (map[string]any, bool) {
	said := map[string]bool{}
	for _, l := range cli.Leaves(input) {
		if said[l.Name] {
			return nil, false
		}
		said[l.Name] = true
	}
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil || fields == nil {
		return nil, false
	}
	for name, value := range fields {
		if value == nil || slices.Contains(volatile(), name) {
			delete(fields, name)
		}
	}
	return fields, true
}

// onlyFields reports whether there are no other fields than these, so that no unknown field changes their meaning.
func onlyFields(fields map[string]any, names ...string) bool {
	for name := range fields {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// wrapped matches the shell command line that some agents wrap a command in.
var wrapped = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:/usr)?(?:/bin/)?(?:ba|z)?sh -l?c (?:'([^']*)'|([A-Za-z0-9_./-]+))$`)
})

// commandOf returns the command of an approval if the approval is about nothing else.
func commandOf(p cli.ApprovalAsked, dir string) (string, bool) {
	fields, ok := fieldsOf(p.Input)
	if !ok || len(p.Changes) > 0 || p.Tool == cli.PlanTool {
		return "", false
	}
	if fields["kind"] == "shell" {
		return copilotCommand(fields)
	}
	if fields["environmentId"] == "local" { // Codex runs everything there
		delete(fields, "environmentId")
	}
	if fields["is_background"] == false { // Qwen Code adds it to every command
		delete(fields, "is_background")
	}
	// Copilot repeats the command in ACP
	if list, ok := fields["commands"].([]any); ok && len(list) == 1 && list[0] == fields["command"] {
		delete(fields, "commands")
	}
	if !onlyFields(fields, "command", "description", "timeout", "reason", "kind", "cwd", "workdir") {
		return "", false
	}
	for _, name := range []string{"cwd", "workdir"} {
		if at, given := fields[name]; given && at != dir {
			return "", false
		}
	}
	command, ok := fields["command"].(string)
	if !ok || strings.TrimSpace(command) == "" {
		return "", false
	}
	if m := wrapped().FindStringSubmatch(command); m != nil {
		command = m[1] + m[2]
	}
	return command, true
}

// copilotCommand returns the command of a Copilot request, which also contains Copilot's own analysis of the command.
func copilotCommand(fields map[string]any) (string, bool) {
	command, _ := fields["fullCommandText"].(string)
	redirects, _ := fields["hasWriteFileRedirection"].(bool)
	return command, !redirects && strings.TrimSpace(command) != "" && onlyFields(fields, "kind", "fullCommandText", "shellType", "intention",
		"commands", "commandSegments", "possiblePaths", "possibleUrls", "canOfferSessionApproval", "hasWriteFileRedirection")
}

// digestOf returns the same digest for requests with the same effect. It ignores the fields that only identify a
// request.
func digestOf(a orchestrator.ApprovalRequest) string {
	var same any = each(a.Questions, func(q cli.Question) digestQuestion {
		options := each(q.Options, func(o cli.Option) digestOption { return digestOption(o) })
		return digestQuestion{q.Header, q.Text, options, q.Multi, q.Free, q.Secret}
	})
	if p := a.Request; p != nil {
		weights := map[string]cli.Weight{}
		for _, f := range p.Fields { // a repeated key is not a label
			if _, again := weights[f.Name]; again {
				f.Weight = cli.PlainField
			}
			weights[f.Name] = f.Weight
		}
		named := func(name string) bool { return weights[name] == cli.LabelField }
		fields := slices.DeleteFunc(slices.Clone(p.Fields), func(f cli.Field) bool { return named(f.Name) })
		leaves := slices.DeleteFunc(cli.Leaves(p.Input), func(l cli.Leaf) bool { return named(l.Name) })
		slices.SortStableFunc(fields, func(a, b cli.Field) int { return strings.Compare(a.Name, b.Name) })
		slices.SortStableFunc(leaves, func(a, b cli.Leaf) int { return strings.Compare(a.Name, b.Name) })
		parts := []any{
			p.Tool, p.Title, p.Detail, p.Missing, each(p.Changes, func(c cli.FileChanged) digestChange { return digestChange(c) }),
			each(fields, func(f cli.Field) digestField { return digestField(f) }), leaves,
		}
		if len(p.Links) > 0 {
			parts = append(parts, each(p.Links, func(l cli.Link) digestLink { return digestLink(l) }))
		}
		same = parts
	}
	text, err := json.Marshal([]any{a.Agent, a.Dir, same})
	if err != nil { // an input that cannot be compared equals no other
		text = fmt.Appendf(nil, "%s %q", a.Turn, a.AgentIDs)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// The digest has its own types. Digests are stored, so renaming the fields of other types must not change them.
type (
	digestField struct {
		Name, Value string
		Weight      cli.Weight
	}
	digestChange struct {
		Path string
		Kind cli.ChangeKind
		Diff string
	}
	digestLink struct {
		Path, Real string
		Outside    bool
	}
	digestQuestion struct {
		Header, Text        string
		Options             []digestOption
		Multi, Free, Secret bool
	}
	digestOption struct{ Label, Description string }
)

// each applies f to all elements. It returns nil for nil, which a digest distinguishes from an empty slice.
func each[A, B any](all []A, f func(A) B) []B {
	if all == nil {
		return nil
	}
	forms := make([]B, len(all))
	for i, a := range all {
		forms[i] = f(a)
	}
	return forms
}
