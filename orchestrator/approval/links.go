package approval

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

const inspectWait = 20 * time.Second

// pathBytes limits the length of a path in a request. A longer text is not a path.
const pathBytes = 4096

// Files reads files in the environment of an agent.
type Files interface {
	// ReadFile behaves like rooted.Read, and RealPaths like rooted.RealPaths.
	ReadFile(ctx context.Context, dir, below string, limit int64) ([]byte, error)
	RealPaths(ctx context.Context, paths []string) ([]string, error)
}

type machine struct{}

func (machine) ReadFile(_ context.Context, dir, below string, most int64) ([]byte, error) {
	return rooted.Read(dir, below, most)
}

func (machine) RealPaths(_ context.Context, paths []string) ([]string, error) {
	return rooted.RealPaths(paths), nil
}

func (r *Requests) files() (Files, error) {
	if in := r.turn.Turn.Sandbox; in != "" {
		return r.s.opts.Files(in)
	}
	return machine{}, nil
}

// planBytes is the maximum length of a plan that a chat shows.
const planBytes = 64 << 10

// readPlan reads the plan file that a request names, and adds the plan to the request. If readPlan cannot read the
// file, it marks the request as incomplete.
func (r *Requests) readPlan(ctx context.Context, p *cli.ApprovalAsked) {
	if p.Tool != cli.PlanTool || p.Detail != "" || len(p.Input) > 0 || !filepath.IsAbs(p.Title) ||
		filepath.Ext(p.Title) != ".md" {
		return
	}
	var plan []byte
	files, err := r.files()
	if err == nil {
		err = rooted.CheckVisible(filepath.Base(p.Title))
	}
	if err == nil {
		plan, err = files.ReadFile(ctx, filepath.Dir(p.Title), filepath.Base(p.Title), planBytes)
	}
	if err != nil {
		r.log.Error("read the plan of a request", "err", err)
	}
	if p.Detail = strings.TrimSpace(string(plan)); p.Detail == "" {
		p.Missing = cmp.Or(p.Missing, "the plan")
	}
}

// inspect reads files in the turn's environment and adds information about them to a request: the files of a skill, a
// plan, and the targets of symbolic links.
func (r *Requests) inspect(a *orchestrator.ApprovalRequest) {
	ctx, cancel := context.WithTimeout(r.life, inspectWait)
	defer cancel()
	t, project := r.turn.Turn, r.turn.Project
	// A helper (see Helper) made this request. Helpers work without the settings and the skills of the project.
	if r.own[a.AgentIDs[0]].of.Agent != "" {
		project = cli.WithoutProject
	}
	*a.Request = r.s.opts.Agents.ShowSkill(ctx, a.Agent, cli.Request{Sandbox: t.Sandbox, Session: string(t.Session),
		Dir: r.turn.Dir, Project: project, Accounts: cli.Accounts{t.Agent: t.Entry.Account}}, *a.Request)
	r.readPlan(ctx, a.Request)
	r.findLinks(ctx, a)
}

// findLinks adds the targets of symbolic links to a request. If it cannot find out whether a path is a symbolic link,
// it marks the request as incomplete.
func (r *Requests) findLinks(ctx context.Context, a *orchestrator.ApprovalRequest) {
	p, named := a.Request, pathsOf(*a)
	if len(named) == 0 || !filepath.IsAbs(r.turn.Dir) {
		return
	}
	files, err := r.files()
	var real []string
	if err == nil {
		real, err = files.RealPaths(ctx, append([]string{r.turn.Dir}, named...))
	}
	if err != nil {
		r.log.Error("resolve the paths of a request", "err", err)
		p.Missing = cmp.Or(p.Missing, "where its paths lead")
		return
	}
	a.Links = linksOf(r.turn.Dir, named, real[0], real[1:])
	if len(p.Changes) == 0 {
		return
	}
	realOf := map[string]string{}
	for i, path := range named {
		realOf[path] = real[i+1]
	}
	p.Changes = slices.Clone(p.Changes)
	current := currentFiles{files: files, dir: real[0], room: currentBytes, known: r.turn.Known()}
	if r.s.touchesOwn(*a) { // never open ductor's database, because closing it would release SQLite's locks
		current.room = 0
	}
	for i, c := range p.Changes {
		if path := realOf[cli.Absolute(r.turn.Dir, c.Path)]; path != "" && c.Kind != cli.FileDeleted {
			p.Changes[i] = current.compare(ctx, path, c)
		}
	}
}

// targetMoved reports whether the target of a symbolic link in a request has changed since the user saw the request. It
// also returns true if it cannot resolve the link.
func (r *Requests) targetMoved(asked orchestrator.ApprovalRequest) bool {
	ctx, cancel := context.WithTimeout(r.life, inspectWait)
	defer cancel()
	now, p := asked, *asked.Request
	now.Request = &p
	r.findLinks(ctx, &now)
	return now.Request.Missing != asked.Request.Missing || !slices.Equal(now.Links, asked.Links)
}

// currentBytes limits how many bytes of current files ductor reads for the diffs of one request. A longer diff might
// not fit into the chat.
const currentBytes = 32 << 10

// currentFiles compares proposed changes with the current files.
type currentFiles struct {
	files Files
	dir   string // directory of the turn, without symbolic links
	room  int64  // number of bytes that may still be read
	known *secrets.Set
}

// compare corrects the kind and the diff of a change if the agent's diff only adds lines. Many agents show such a diff
// when they create a file, when they replace a file, and when they add lines to a file. compare reads the current file
// to distinguish these cases:
//   - If the file does not exist, the kind becomes FileAdded.
//   - If the agent adds lines to an existing file, the kind becomes FileUpdated.
//   - If the agent replaces an existing file, the kind becomes FileUpdated, and the diff then also contains the
//     removed lines. If compare cannot show the removed lines, the kind becomes FileReplaced instead. For example,
//     these lines may be too long, contain a secret, or be in a file that the agent may not read without asking.
//   - If the agent has reported FileReplaced, compare only checks whether the file exists.
func (f *currentFiles) compare(ctx context.Context, path string, c cli.FileChanged) cli.FileChanged {
	text, added := cli.AddedText(c.Diff)
	if !added {
		return c
	}
	whole, room := c.Kind == cli.FileAdded, int64(0)
	dir, below := "/", strings.TrimPrefix(path, "/")
	// f.dir itself may be below a hidden directory, so check only the path below f.dir.
	if rel, err := filepath.Rel(f.dir, path); err == nil && filepath.IsLocal(rel) {
		dir, below = f.dir, rel
		if whole && plainWord(rel, false) { // the agent may read this file without asking, so compare reads it, too
			room = f.room
		}
	}
	was, err := f.files.ReadFile(ctx, dir, below, room)
	var refused *rooted.Error
	switch {
	case err == nil:
		f.room -= int64(len(was))
		c.Kind = cli.FileReplaced
		diff := cli.UnifiedDiff(string(was), text)
		if utf8.Valid(was) && len(diff) <= max(len(c.Diff), currentBytes) && f.known.String(diff) == diff {
			c.Kind, c.Diff = cli.FileUpdated, diff
		}
	case !errors.As(err, &refused):
	case refused.Refusal == rooted.NotThere:
		c.Kind = cli.FileAdded
	case c.Kind == cli.FileReplaced:
	case refused.Refusal == rooted.Empty, refused.Refusal == rooted.TooLarge && !whole:
		c.Kind = cli.FileUpdated
	case whole:
		c.Kind = cli.FileReplaced
	}
	return c
}

// linksOf returns the paths that lead through a symbolic link. dir and paths are as in the request. realDir and
// realPaths are the same directory and paths after resolving all symbolic links.
func linksOf(dir string, paths []string, realDir string, realPaths []string) (links []orchestrator.Link) {
	for i, path := range paths {
		expected := path
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			expected = filepath.Join(realDir, rel)
		}
		if realPaths[i] != expected {
			links = append(links, orchestrator.Link{
				Path: cli.Relative(dir, path), Real: cli.Relative(realDir, realPaths[i]),
				Outside: !cli.Lies(realPaths[i], realDir),
			})
		}
	}
	return links
}

// pathsOf returns all texts in a request that could be paths, as absolute paths: changed files, the title, fields, and
// the words of a command.
func pathsOf(a orchestrator.ApprovalRequest) (paths []string) {
	p := a.Request
	seen := map[string]bool{}
	add := func(text string) {
		text = strings.TrimPrefix(text, "file://")
		if text == "" || len(text) > pathBytes || strings.ContainsAny(text, "\n\x00") {
			return
		}
		if path := cli.Absolute(a.Dir, text); !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	for _, c := range p.Changes {
		add(c.Path)
	}
	if p.Tool != cli.PlanTool {
		add(p.Title)
	}
	for _, f := range p.Fields {
		if f.Weight != cli.LabelField {
			add(f.Value)
		}
	}
	for _, word := range wordsOf(p, commandOf(a)) {
		add(word)
	}
	return paths
}

// wordsOf returns the words of a request that could be paths: all words of a plain command, including the program, or
// the path of the file that a tool reads.
func wordsOf(p *cli.ApprovalAsked, command string) []string {
	if plainCommand(command) {
		return strings.Split(command, " ")
	}
	if path := p.Effect.Read; path != "" {
		return []string{path}
	}
	return nil
}
