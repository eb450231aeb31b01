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

// readsBelow reports whether a request only reads or lists files below the turn's directory, none of which is hidden or
// secret. It checks the names of the files and the targets of symbolic links. It returns false for a command if the
// agent gives the user a reason why it asks; see cli.ShellUse.
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

// readable reports whether the agent may read these files without asking. The names must fulfil the conditions of
// plainWords.
func readable(paths []string, a orchestrator.ApprovalRequest) bool {
	unseen := func(path string) bool {
		return len(path) > pathBytes || strings.ContainsAny(path, "\n\x00") ||
			!plainWord(cli.Relative(a.Dir, path), false)
	}
	return staysInside(a.Links) && !slices.ContainsFunc(paths, unseen)
}

// readers maps harmless commands for reading to their harmless options. These commands print files that are named on
// the command line, or names and sizes of files. The options only change the format. Commands that print all files
// below a directory are not in the map, because the directory may contain hidden files and links.
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

// readWords returns the words of a plain command that may be names of files. It returns false unless the command only
// reads files and is one of the commands in readers.
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
