package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// plainCommand reports whether every shell would run s as one command of plain words. So s contains no quotes,
// variables, patterns, redirections or second command.
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

// plainWords reports whether a plain command may run with certain arguments without asking a user. The caller splits
// the command into its first words and its arguments. An argument must not be an option, a path out of the working
// directory, the name of a host, or a hidden or secret file. The target of a symbolic link must fulfil these
// conditions, too.
func plainWords(head, rest string, links []orchestrator.Link) bool {
	// After "run", a word with a colon is the name of a script, such as "test:unit". After other commands, such a word
	// may be a path on another host. For git, it may be a pair source:target.
	scripts := strings.HasSuffix(head, " run")
	return !slices.ContainsFunc(strings.Split(rest, " "),
		func(word string) bool { return !plainWord(word, scripts) }) && staysInside(links)
}

func plainWord(word string, script bool) bool {
	return word != "" && !strings.ContainsAny(word[:1], "-/:@+~") && !strings.Contains(word, "=") &&
		!strings.Contains(word, ":/") &&
		(script || !strings.Contains(word, ":")) && !private(word)
}

// staysInside reports whether the targets of all links are inside the working directory, and none of them is hidden or
// secret.
func staysInside(links []orchestrator.Link) bool {
	return !slices.ContainsFunc(links, func(l orchestrator.Link) bool { return l.Outside || private(l.Real) })
}

// private reports whether a path contains "..", is hidden, lies below a hidden directory, or has a name that is usual
// for files with secrets.
func private(path string) bool {
	parts := strings.Split(path, "/")
	hidden := func(part string) bool {
		return strings.HasPrefix(part, ".") && part != "." && part != "..." // "..." is not hidden: go test ./...
	}
	return slices.ContainsFunc(parts, hidden) || secrets.IsFile(parts[len(parts)-1])
}

// matchPrefix reports whether a command consists of the prefix and plain words after it.
func matchPrefix(prefix, command string, links []orchestrator.Link) bool {
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

// commandOf returns the command of a request. It returns "" if the request also changes files, if the command runs
// outside of the turn's directory, or if the request is a plan.
func commandOf(a orchestrator.ApprovalRequest) string {
	p := a.Request
	if p.Tool == cli.PlanTool || len(p.Changes) > 0 || p.Effect.Dir != a.Dir {
		return ""
	}
	return p.Effect.Command
}

// digestOf returns a hash of a request, without its IDs. Requests with the same hash have the same effect.
func digestOf(a orchestrator.ApprovalRequest) string {
	var same any = each(a.Questions, func(q cli.Question) digestQuestion {
		options := each(q.Options, func(o cli.Option) digestOption { return digestOption(o) })
		return digestQuestion{q.Header, q.Text, options, q.Multi, q.Free, q.Secret}
	})
	if p := a.Request; p != nil {
		fields, leaves := p.DistinctParts()
		parts := []any{
			p.Tool, p.Title, p.Detail, p.Missing, each(p.Changes,
				func(c cli.FileChanged) digestChange { return digestChange(c) }),
			each(fields, func(f cli.Field) digestField { return digestField(f) }), leaves,
		}
		if len(a.Links) > 0 {
			parts = append(parts, each(a.Links, func(l orchestrator.Link) digestLink { return digestLink(l) }))
		}
		same = parts
	}
	text, err := json.Marshal([]any{a.Agent, a.Dir, same})
	if err != nil { // make the hash unique if the request cannot be encoded as JSON
		text = fmt.Appendf(nil, "%s %q", a.Turn, a.AgentIDs)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Types that are encoded for the hash. They are separate from the types of package cli, because renaming a field would
// change the stored hashes.
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

// each returns f(x) for each element x. It returns nil if the slice is nil, because nil and an empty slice have
// different hashes.
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
