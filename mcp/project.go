package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"ductor/internal/rooted"
	"ductor/orchestrator/handoff"
)

// Limits of the tool count_project_tokens.
const (
	maxFiles      = 20_000
	maxFileSize   = 2 << 20 // size of a file in bytes
	maxRead       = 256 << 20
	binaryPrefix  = 8 << 10 // a file is binary if its first 8 KiB contain a zero byte
	maxTopEntries = 40
)

type countTokens struct {
	Path string `json:"path,omitempty" jsonschema:"a directory or file below the project; the whole project by default"`
}

func (t *toolset) addProject() {
	registerTool(t, "count_project_tokens",
		"Estimate how many tokens the texts of the current project have. Hidden files, links, node_modules and files "+
			"that are no text are not counted.",
		func(in countTokens) string { return in.Path }, countProject)
}

// tokenCount is the result of the tool count_project_tokens.
type tokenCount struct {
	files, tokens, skipped int
	read                   int64
	top                    map[string]int // tokens of each file and directory directly below the counted path
	truncated              bool
}

func countProject(ctx context.Context, c call, in countTokens) (string, error) {
	open := os.OpenRoot
	// An agent in a sandbox may have replaced the directory by a link to another directory of this host.
	if c.Turn.Sandbox != "" {
		open = rooted.OpenDir
	}
	root, err := open(c.Request.Dir)
	if err != nil {
		return "", errors.New("the directory of the project cannot be read here")
	}
	defer root.Close()
	at := path.Clean(strings.TrimPrefix(in.Path, "./"))
	if in.Path == "" {
		at = "."
	}
	if !fs.ValidPath(at) {
		return "", fmt.Errorf("%q is not a path below the project", in.Path)
	}
	sum := tokenCount{top: map[string]int{}}
	err = fs.WalkDir(root.FS(), at, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == at:
			return fmt.Errorf("%q cannot be read", at)
		case err != nil:
			sum.skipped++
			return nil
		case d.IsDir() && name != at && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir(), strings.HasPrefix(d.Name(), "."), !d.Type().IsRegular():
			return nil
		case sum.files >= maxFiles || sum.read >= maxRead:
			sum.truncated = true
			return fs.SkipAll
		}
		sum.countFile(root.FS(), at, name, d)
		return nil
	})
	if err != nil {
		return "", err
	}
	return sum.String(), nil
}

// countFile counts the tokens of a file. It skips large and binary files.
func (c *tokenCount) countFile(files fs.FS, at, name string, d fs.DirEntry) {
	info, err := d.Info()
	if err != nil || info.Size() > maxFileSize {
		c.skipped++
		return
	}
	raw, err := fs.ReadFile(files, name)
	if err != nil || bytes.IndexByte(raw[:min(len(raw), binaryPrefix)], 0) >= 0 {
		c.skipped++
		return
	}
	n := handoff.Tokens(string(raw))
	c.files, c.tokens, c.read = c.files+1, c.tokens+n, c.read+info.Size()
	below := strings.TrimPrefix(strings.TrimPrefix(name, at), "/")
	first, rest, _ := strings.Cut(below, "/")
	if rest != "" {
		first += "/"
	}
	c.top[first] += n
}

func (c *tokenCount) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "About %d tokens in %d files.", c.tokens, c.files)
	if c.skipped > 0 {
		fmt.Fprintf(&b, " %d files were passed over: they are no text, are too long or cannot be read.", c.skipped)
	}
	if c.truncated {
		b.WriteString(" There are more files, which were not counted.")
	}
	b.WriteString("\n")
	names := slices.SortedFunc(maps.Keys(c.top), func(a, b string) int { return c.top[b] - c.top[a] })
	for _, name := range names[:min(len(names), maxTopEntries)] {
		if name != "" {
			fmt.Fprintf(&b, "%8d  %s\n", c.top[name], name)
		}
	}
	return b.String()
}
