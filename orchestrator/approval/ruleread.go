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

// readsBelow reports whether an approval does nothing but read or list files below its directory that are neither
// hidden nor secret. It judges files by their names and by the targets of links. It returns false for a request with a
// reason.
func readsBelow(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	if p == nil || p.Tool == cli.PlanTool || len(p.Changes) > 0 || !filepath.IsAbs(a.Dir) {
		return false
	}
	if p.Effect.Read != "" {
		return readable([]string{p.Effect.Read}, a)
	}
	command := commandOf(a)
	if p.Effect.Shell != cli.ShellRoutine || !plainCommand(command) {
		return false
	}
	words, ok := readWords(command)
	return ok && readable(words, a)
}

// readable reports whether the agent may read the paths of an approval without asking; see plainWords.
func readable(paths []string, a orchestrator.ApprovalRequest) bool {
	unseen := func(path string) bool {
		return len(path) > pathBytes || strings.ContainsAny(path, "\n\x00") ||
			!plainWord(cli.Relative(a.Dir, path), false)
	}
	return staysInside(a.Links) && !slices.ContainsFunc(paths, unseen)
}

// readers maps each harmless reading command to its harmless options. The commands print only the files that they name,
// or the names and sizes of files. The options change only the form of the output. Commands that print the contents of
// all files below a directory are missing, because hidden files and links may be there.
func readers() map[string]string {
	return map[string]string{
		"cat": "AbEensTtuv", "head": "cnqvz0123456789", "tail": "cnqvz0123456789", "nl": "ab", "wc": "clLmw",
		"pwd": "LP",
		"ls":  "1AaBCFGghiklmnopQqRrSstUuvXx", "stat": "Lt", "du": "abchkmsS", "file": "b", "tree": "adfhs",
		"grep": "ABCcEFGHhiLlnoPqsvwx0123456789", "sed": "n",
	}
}

// sedLines matches a sed script that prints lines by number.
var sedLines = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+(,\d+)?p$`) })

// readWords returns the words of a plain command that can name files. It returns false if the command may do more than
// read these files.
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
