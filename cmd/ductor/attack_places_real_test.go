package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/claude"
	"ductor/cli/codex"
	"ductor/cli/copilot"
	"ductor/cli/gemini"
	"ductor/internal/config"
)

// settingsOf returns the places about which ductor asks the user before an agent reads them.
func settingsOf(agent string) []string {
	if entry, ok := acp.EntryOf(agent); ok {
		return entry.Project.Files
	}
	return map[string]cli.ProjectReader{
		"claude": claude.New(claude.Options{}), "codex": codex.New(codex.Options{}),
		"copilot": copilot.New(copilot.Options{}), "gemini": gemini.New(gemini.Options{}),
	}[agent].ProjectFiles()
}

// harmless returns other places that the real agents read, in the project and above it. Each was checked: it contains
// text for the model, names of files to ignore, or nothing that runs or grants anything. The test fails if a new
// version reads other places.
func harmless() map[string][]string {
	own := map[string][]string{
		"claude": {"CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/", ".claude/hooks", ".claude",
			".claude/worktrees", // Claude sometimes lists it at its start to remove its own old worktrees
			"config", "hooks", "objects", "refs", "AGENTS.md", ".github/workflows"},
		"codex": {"AGENTS.md", "AGENTS.override.md", ".agents/", ".aws", ".claude-plugin/plugin.json",
			".codex-plugin/plugin.json", ".cursor-plugin/plugin.json"},
		"copilot": {"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/rules/", ".github/copilot-instructions.md",
			".github/instructions/", ".github/allowed_models.txt", ".github/pull_request_template.md",
			".github/PULL_REQUEST_TEMPLATE", "pull_request_template.md", "docs/pull_request_template.md",
			"PULL_REQUEST_TEMPLATE", "docs/PULL_REQUEST_TEMPLATE", ".github"},
		"gemini":   {"GEMINI.md", ".geminiignore"},
		"cline":    {"AGENTS.md"},
		"opencode": {"AGENTS.md", "CLAUDE.md", "CONTEXT.md", ".agents", ".agents/skills", ".claude", ".jj"},
		"qwen":     {"AGENTS.md", "QWEN.md", ".qwenignore", ".agentignore", ".aiignore", "logs/openai"},
	}
	own["claude-agent-acp"], own["codex-acp"] = append(own["claude"], ".claude/AGENTS.md"), own["codex"]
	return own
}

const (
	placesBegin = "<!-- places: `go test ./cmd/ductor -run TestTheDocsNameThePlaces -update` writes this table; " +
		"TestTheRealAgentsInARepositoryWithPrograms and TestUsersAgentsInAProjectThatAllowsEverything hold it -->\n"
	placesEnd = "<!-- end of places -->"
)

func TestTheDocsNameThePlaces(t *testing.T) {
	var table strings.Builder
	table.WriteString(placesBegin + "| agent | you are asked about | read or looked for besides: words for the model, or nothing that runs |\n|---|---|---|\n")
	for _, agent := range slices.Sorted(maps.Keys(harmless())) {
		fmt.Fprintf(&table, "| %s | `%s` | `%s` |\n", agent, strings.Join(settingsOf(agent), "`, `"),
			strings.Join(harmless()[agent], "`, `"))
	}
	checkTable(t, placesBegin, placesEnd, table.String(), *updateDocs)
}

// traceAgent runs the agent under strace, if that is possible, to record the files that it opens.
func (r *repository) traceAgent(t *testing.T, c *config.Config) {
	strace, err := exec.LookPath("strace")
	if err == nil {
		err = exec.CommandContext(t.Context(), strace, "-f", "--seccomp-bpf", "-o", os.DevNull, "true").Run()
	}
	if err != nil {
		t.Logf("it is not looked which places it reads: %v", err)
		return
	}
	traces := filepath.Join(r.base, "traces")
	if err := os.Mkdir(traces, 0o700); err != nil {
		t.Fatal(err)
	}
	users := c.Agents.ACP[r.agent]
	program := map[string]*string{"claude": &c.Agents.Claude.Path, "codex": &c.Agents.Codex.Path,
		"copilot": &c.Agents.Copilot.Path, "gemini": &c.Agents.Gemini.Path}[r.agent]
	if program == nil {
		program = &users.Path
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' -f --seccomp-bpf -qq -e trace=file -o '%s'/$$ '%s' \"$@\"\n", strace,
		traces, *program)
	*program = filepath.Join(traces, filepath.Base(*program)) // the catalogue knows agents by this name
	if err := os.WriteFile(*program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if users.Path != "" {
		c.Agents.ACP[r.agent] = users
	}
}

// tracedCall matches the path and the result of a call, and the flags of an open.
var tracedCall = regexp.MustCompile(`^\d+ +\w+\([^"]*"([^"]*)"(.*) = (-?\d+)(?: (E[A-Z]+))?`)

// checkKnownReads fails if the agent opened or searched for a file in or above the project that is neither asked
// about nor harmless. objects are the files of commands that the test had the agent run.
func (r *repository) checkKnownReads(objects ...string) {
	r.t.Helper()
	known := slices.Concat(settingsOf(r.agent), harmless()[r.agent], objects)
	unknown := map[string]bool{}
	traces, err := filepath.Glob(filepath.Join(r.base, "traces", "[0-9]*"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, trace := range traces {
		f, err := os.Open(trace)
		if err != nil {
			r.t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			m := tracedCall.FindStringSubmatch(lines.Text())
			if m == nil {
				continue
			}
			opened := m[3] != "-1" && strings.Contains(m[2], "O_RDONLY") && !strings.Contains(m[2], "O_DIRECTORY") &&
				isFile(m[1])
			if place, ok := r.place(m[1]); ok && (opened || m[4] == "ENOENT") &&
				!slices.ContainsFunc(known, func(k string) bool { return in(place, k) }) {
				unknown[place] = true
			}
		}
		if err := lines.Err(); err != nil {
			r.t.Fatal(err)
		}
	}
	if len(unknown) > 0 {
		r.t.Errorf("%s looks into places that ductor does not know:\n%s\nIf a file there can run or grant anything, it belongs into ProjectFiles of its package; else into harmless.",
			r.agent, strings.Join(slices.Sorted(maps.Keys(unknown)), "\n"))
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// in reports whether a place is known, or lies below a known place that ends in a slash.
func in(place, known string) bool {
	if strings.HasSuffix(known, "/") {
		return strings.HasPrefix(place+"/", known)
	}
	ok, _ := path.Match(known, place) // the patterns are constants
	return ok
}

// ofGit matches the files of a repository itself, which git reads for every command, and files with patterns to
// ignore.
var ofGit = regexp.MustCompile(`/(\.git|\.gitignore|\.gitattributes|\.mailmap|\.ignore|\.rgignore|HEAD)(/|$)`)

// place returns a path relative to the project, or to a directory above it. It returns false for paths elsewhere.
func (r *repository) place(file string) (string, bool) {
	if !filepath.IsAbs(file) && strings.HasPrefix(file, ".") { // other relative names come from git or a search
		file = filepath.Join(r.dir, file)
	}
	if strings.EqualFold(file, r.dir) { // Codex checks whether names differ by case
		return "", false
	}
	if !filepath.IsAbs(file) || ofGit.MatchString(file) || !strings.HasPrefix(file, r.dir) &&
		strings.HasPrefix(file, r.base+"/home/") {
		return "", false
	}
	for at := r.dir; ; at = filepath.Dir(at) {
		below, err := filepath.Rel(at, file)
		if err == nil && below != "." && below != ".." && !strings.HasPrefix(below, "../") {
			// Directories further up also contain the machine's own files.
			inside := at == r.dir || at == filepath.Dir(r.dir) || at == filepath.Dir(filepath.Dir(r.dir))
			return below, inside || strings.HasPrefix(below, ".") || strings.HasSuffix(below, ".md") &&
				!strings.Contains(below, "/")
		}
		if at == "/" {
			return "", false
		}
	}
}
