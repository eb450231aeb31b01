package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ductor/test/ordeal/scenario"
)

// wrongFiles finds files whose content differs from the last write in an agent's log.
func wrongFiles(f *facts) (all []Violation) {
	for _, s := range f.Sent {
		if strings.HasPrefix(s.Text, "/checkpoint") {
			return nil
		}
	}
	for _, p := range f.Presses {
		if isOne(p.Label, scenario.Undo, scenario.Redo, "changes.return-before", "changes.return-after",
			"changes.return", "changes.go-back") {
			return nil
		}
	}
	last, of := map[string]string{}, map[string][]string{}
	for _, p := range f.prompts {
		for i, act := range p.Acts {
			if w, ok := act.(scenario.Write); ok {
				of[w.File] = append(of[w.File], p.Token.Effect(i))
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(f.Files)) {
		if got := strings.TrimSpace(f.Files[path]); len(of[path]) > 0 && !slices.Contains(of[path], got) {
			all = append(all, Violation{Detail: fmt.Sprintf("%s has %q, which no agent wrote", path, got)})
		}
	}
	for _, e := range slices.SortedStableFunc(slices.Values(f.Agents), func(a, b AgentEvent) int {
		return a.At.Compare(b.At)
	}) {
		if path, ok := f.written(e); ok {
			last[path] = e.Name
		}
	}
	for _, path := range slices.Sorted(maps.Keys(last)) {
		if got := strings.TrimSpace(f.Files[path]); f.Files != nil && got != last[path] {
			all = append(all, Violation{Detail: fmt.Sprintf("%s has %q; the last to write it was %s", path, got,
				last[path])})
		}
	}
	return all
}

// written returns the path of the file that an agent wrote in the event e. It returns false if the agent did something
// else in this event.
func (f *facts) written(e AgentEvent) (path string, ok bool) {
	_, number, _ := strings.Cut(e.Name, ".")
	i, err := strconv.Atoi(number)
	if p := f.prompts[e.Token]; e.What == Effect && err == nil && i < len(p.Acts) {
		w, is := p.Acts[i].(scenario.Write)
		return w.File, is
	}
	return "", false
}
