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

// readsBelow reports whether an approval does nothing but read or list files below its directory. None of the files may
// be hidden or contain secrets, judged by its name and by the target of a link. It returns false for a request with a
// reason.
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

// shells lists the agents' own tools that run commands. Tools of other servers may interpret a command differently.
func shells() []string { return []string{"Bash", "bash", "shell", "run_shell_command", "execute"} }

// needsMore reports whether the agent gives a reason for asking: it needs more rights, or considers a file sensitive.
// Copilot's intention, which it adds to every tool, is not such a reason.
func needsMore(p cli.ApprovalAsked, fields map[string]any) bool {
	intention, _ := fields["intention"].(string)
	return p.Reason != "" && strings.Join(strings.Fields(p.Reason), " ") != strings.Join(strings.Fields(intention), " ")
}

// copilotRead returns the file or directory that one of Copilot's tools reads or lists, if it does nothing else. A
// search in a directory also reads hidden files, so it does not count.
func copilotRead(p cli.ApprovalAsked) (path string, ok bool) {
	fields, ok := fieldsOf(p.Input)
	if !ok || fields["kind"] != "read" || !onlyFields(fields, "kind", "path", "intention", "canOfferSessionApproval") || needsMore(p, fields) {
		return "", false
	}
	path, _ = fields["path"].(string)
	inFile := p.Tool == "grep" && strings.HasPrefix(p.Reason, "Search in file: ")
	return path, path != "" && (p.Tool == "view" || p.Tool == "glob" || inFile)
}

// readable reports whether paths, which may be relative to dir, may be read without asking; see plainWords.
func readable(paths []string, dir string, links []cli.Link) bool {
	unseen := func(path string) bool {
		return len(path) > pathBytes || strings.ContainsAny(path, "\n\x00") || !plainWord(cli.Relative(dir, path), false)
	}
	return staysInside(links) && !slices.ContainsFunc(paths, unseen)
}

// readers maps commands that only print the files they name, or their names and sizes, to the options that only change
// the output. None of them reads below a directory, where hidden files and links may be.
func readers() map[string]string {
	return map[string]string{
		"cat": "AbEensTtuv", "head": "cnqvz0123456789", "tail": "cnqvz0123456789", "nl": "ab", "wc": "clLmw", "pwd": "LP",
		"ls": "1AaBCFGghiklmnopQqRrSstUuvXx", "stat": "Lt", "du": "abchkmsS", "file": "b", "tree": "adfhs",
		"grep": "ABCcEFGHhiLlnoPqsvwx0123456789", "sed": "n",
	}
}

// sedLines matches a sed script that prints lines by number.
var sedLines = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+(,\d+)?p$`) })

// readWords returns the words of a plain command that can name files. It returns false if the command may do more than
// read those files.
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
