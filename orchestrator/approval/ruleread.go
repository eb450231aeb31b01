package approval

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/orchestrator"
)

// readsBelow reports whether all that an approval does is to read or list files below its directory. None of them is hidden or a file
// of secrets, by its name or by a link. A request with a reason is more than that.
func readsBelow(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	if p == nil || p.Tool == cli.PlanTool || len(p.Changes) > 0 || !filepath.IsAbs(a.Dir) {
		return false
	}
	if path, ok := copilotRead(*p); ok {
		return readable([]string{path}, a.Dir, p.Links)
	}
	fields, _ := fieldsOf(p.Input)
	command, ok := commandOf(*p, a.Dir)
	if !ok || !slices.Contains(shells(), p.Tool) || !plainCommand(command) || needsMore(*p, fields) {
		return false
	}
	words, ok := readWords(command)
	return ok && readable(words, a.Dir, p.Links)
}

// shells are the names of the agents' own tools that run commands. To the tool of another server, a command may mean anything.
func shells() []string { return []string{"Bash", "bash", "shell", "run_shell_command", "execute"} }

// needsMore reports whether the agent gives a reason to ask: it needs more rights, or takes a file for a sensitive one. What Copilot
// intends with each tool is no such reason.
func needsMore(p cli.ApprovalAsked, fields map[string]any) bool {
	intention, _ := fields["intention"].(string)
	return p.Reason != "" && strings.Join(strings.Fields(p.Reason), " ") != strings.Join(strings.Fields(intention), " ")
}

// copilotRead is the file or directory that one of Copilot's tools would read or list, if it does nothing else. A search in a directory
// reads hidden files too.
func copilotRead(p cli.ApprovalAsked) (path string, ok bool) {
	fields, ok := fieldsOf(p.Input)
	if !ok || fields["kind"] != "read" || !onlyFields(fields, "kind", "path", "intention", "canOfferSessionApproval") || needsMore(p, fields) {
		return "", false
	}
	path, _ = fields["path"].(string)
	inFile := p.Tool == "grep" && strings.HasPrefix(p.Reason, "Search in file: ")
	return path, path != "" && (p.Tool == "view" || p.Tool == "glob" || inFile)
}

// readable reports whether paths, which may be relative to dir, can be read unseen; see plainWords.
func readable(paths []string, dir string, links []cli.Link) bool {
	unseen := func(path string) bool {
		return len(path) > pathBytes || strings.ContainsAny(path, "\n\x00") || !plainWord(cli.Relative(dir, path), false)
	}
	return staysInside(links) && !slices.ContainsFunc(paths, unseen)
}

// readers are the commands that do nothing but print what they are named, or its name and size, and their options that only change how.
// None reads what is below a directory, where hidden files and links lie.
func readers() map[string]string {
	return map[string]string{
		"cat": "AbEensTtuv", "head": "cnqvz0123456789", "tail": "cnqvz0123456789", "nl": "ab", "wc": "clLmw", "pwd": "LP",
		"ls": "1AaBCFGghiklmnopQqRrSstUuvXx", "stat": "Lt", "du": "abchkmsS", "file": "b", "tree": "adfhs",
		"grep": "ABCcEFGHhiLlnoPqsvwx0123456789", "sed": "n",
	}
}

// sedLines is a script of sed that prints lines by their numbers.
var sedLines = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+(,\d+)?p$`) })

// readWords returns the words of a plain command that can name files. It returns false if the command may do more than read these.
func readWords(command string) ([]string, bool) {
	words := strings.Split(command, " ")
	options, known := readers()[words[0]]
	if words[0] == "sed" && (len(words) < 4 || words[1] != "-n" || !sedLines().MatchString(words[2])) {
		return nil, false
	}
	files := slices.DeleteFunc(words[1:], func(word string) bool {
		letters, option := strings.CutPrefix(word, "-")
		return option && letters != "" && strings.Trim(letters, options) == ""
	})
	return files, known
}
