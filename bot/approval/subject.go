package approval

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Maximum lengths of the parts of a request in UTF-16 units, and maximum numbers of changes and links.
const (
	subjectMax = 3300 // maximum total length of all parts; the message needs space for other text, too
	detailMax  = 1200
	diffMax    = 1200 // maximum total length of all changes
	changesMax = 5
	linksMost  = 5
	reasonMax  = 300
	fieldMax   = 200
	widerMax   = 900 // maximum total length of the fields for additional rights
	plainMax   = 900 // maximum total length of the other fields
	pathMax    = 200
)

// subject is the part of a message that describes the request. Text by the agent stands on separate lines, so that
// users cannot mistake it for text by ductor. Fields are an exception: their lines start with the name of the field.
type subject struct {
	lang  lang.Printer
	lines []render.Text
	room  int
	cut   bool // true if a part of the request is not shown
}

// subject describes the request: first the additional rights that the request asks for, then the command or the changed
// files, then the other fields.
func (a view) subject() *subject {
	req := a.Request
	s := &subject{lang: a.lang, room: subjectMax}
	tool, whole := inLine(render.ToolName(a.lang, req.Tool), render.NameLimit)
	s.cut = !whole
	switch agent := render.AgentName(a.lang, a.Agent); {
	case req.Tool == cli.PlanTool:
		s.add(render.Plain(a.lang.Text("approval.begin-plan", agent)))
	case req.Tool == cli.ProjectTool:
		s.add(render.Plain(a.lang.Text("approval.use-project", agent)))
	case req.OnlyEdits() && !slices.ContainsFunc(req.Changes, existed):
		s.add(render.Plain(a.lang.Text("approval.create-files", len(req.Changes), agent)))
	case req.OnlyEdits():
		s.add(render.Plain(a.lang.Text("approval.change-files", len(req.Changes), agent)))
	case req.RunsCommand():
		s.add(render.Plain(a.lang.Text("approval.run-command", agent)))
	default:
		s.add(toolQuestion(a.lang, agent, cli.OwnTool(req.Tool), tool))
	}
	if a.OfTerminal() {
		dir, whole := inLine(a.Dir, pathMax)
		s.cut = s.cut || !whole
		s.add(render.Filled(a.lang.Text("approval.in-terminal", render.Slot), render.Styled(render.Code, dir)))
	}
	if client := a.Outsider(); client != "" {
		s.add(render.Plain(a.lang.Text("approval.for-outsider", client)))
	}
	if why := a.whyShut(); why != "" && a.State == orchestrator.ApprovalOpen {
		s.add(render.Styled(render.Bold, "⚠️ "+why))
	}
	s.links(a.Links)
	s.fields(req, cli.WiderField)
	s.changedSettings(req)
	s.block("", a.about(), detailMax)
	s.changes(a)
	s.fields(req, cli.PlainField)
	reason, whole := inLine(req.Reason, min(reasonMax, s.room))
	s.cut = s.cut || !whole
	if reason != "" {
		s.add(render.Styled(render.Italic, a.lang.Text("approval.reason", reason)))
	}
	return s
}

// toolQuestion asks whether an agent may use a tool. ductorName is ductor's name for one of its own tools, or "" for
// other tools.
func toolQuestion(p lang.Printer, agent, ductorName, tool string) render.Text {
	question := p.Text("approval.use-own-tool", agent, render.Slot)
	switch ductorName {
	case "":
		question = p.Text("approval.use-tool", agent, render.Slot)
	case "work_with":
		return render.Plain(p.Text("approval.give-work", agent))
	case "schedule":
		return render.Plain(p.Text("approval.schedule", agent))
	}
	return render.Filled(question, render.Styled(render.Bold, tool))
}

func existed(ch cli.FileChanged) bool { return ch.Kind != cli.FileAdded }

// about returns the agent's description of the request. It returns "" if the description only lists the changed files.
func (a view) about() string {
	var files []string
	for _, ch := range a.Request.Changes {
		files = append(files, cli.Relative(a.Dir, ch.Path))
	}
	if title := cli.Relative(a.Dir, a.Request.Title); a.Request.Detail == "" && title == strings.Join(files, ", ") {
		return ""
	}
	return cmp.Or(a.Request.Detail, a.Request.Title)
}

func (s *subject) add(line render.Text) {
	s.lines = append(s.lines, line)
	s.room = max(s.room-render.Len(line.Text)-1, 0)
}

// block adds a text as code. It omits the middle of a text with more than maxUnits UTF-16 units.
func (s *subject) block(language, text string, maxUnits int) {
	shown, cut := middle(s.lang, render.Revealed(strings.Trim(text, "\n")), min(maxUnits, s.room))
	s.cut = s.cut || cut
	if strings.TrimSpace(shown) != "" {
		s.add(render.CodeBlock(language, shown))
	}
}

// links adds one line for each path in the request that is a symbolic link. The line shows the target of the link.
func (s *subject) links(links []orchestrator.Link) {
	for i, l := range links {
		if i == linksMost {
			s.cut = true
			s.add(render.Styled(render.Bold, s.lang.Text("approval.more-links", len(links)-i)))
			return
		}
		path, wholePath := inLine(l.Path, pathMax)
		real, wholeReal := inLine(l.Real, pathMax)
		s.cut = s.cut || !wholePath || !wholeReal
		s.add(render.Styled(render.Bold, linkLine(s.lang, l, path, real)))
	}
}

func linkLine(p lang.Printer, l orchestrator.Link, path, real string) string {
	if l.Outside {
		return "⚠️ " + p.Text("approval.leads-outside", path, real)
	}
	return p.Text("approval.leads-to", path, real)
}

// changedSettings adds a line with the settings of a project that have changed since users last allowed them.
func (s *subject) changedSettings(req *cli.ApprovalAsked) {
	for _, f := range req.Fields {
		if req.Tool == cli.ProjectTool && f.Name == cli.ChangedSettings && f.Weight == cli.LabelField {
			names, _ := inLine(f.Value, plainMax/2) // the fields below show the full value
			s.add(render.Plain(s.lang.Text("approval.changed-settings", names)))
		}
	}
}

// fields adds one line for each field with the given weight.
func (s *subject) fields(req *cli.ApprovalAsked, weight cli.Weight) {
	most := map[cli.Weight]int{cli.WiderField: widerMax, cli.PlainField: plainMax}[weight]
	floor := s.room - min(most, s.room)
	left := 0
	for _, f := range req.Fields {
		if f.Weight == cli.LabelField || (f.Weight == cli.WiderField) != (weight == cli.WiderField) {
			continue
		}
		line, whole := fieldLine(s.lang, f)
		if left > 0 || s.room-render.Len(line) <= floor {
			left++
			continue
		}
		s.cut = s.cut || !whole
		if weight == cli.WiderField {
			s.add(render.Styled(render.Bold, "⚠️ "+line))
		} else {
			s.add(render.Plain(line))
		}
	}
	if left > 0 {
		s.cut = true
		s.add(render.Styled(render.Bold, s.lang.Text("approval.more-fields", left)))
	}
}

// fieldLine returns the line of a field. It returns false if the line omits a part of the field.
func fieldLine(p lang.Printer, f cli.Field) (string, bool) {
	name, wholeName := inLine(f.Name, fieldMax)
	value, wholeValue := inLine(f.Value, fieldMax)
	return name + ": " + cmp.Or(value, p.Text("approval.empty")), wholeName && wholeValue
}

// changes adds the files that the request would change, with their diffs.
func (s *subject) changes(a view) {
	changes, dir := a.Request.Changes, a.Dir
	room := diffMax / max(min(len(changes), changesMax), 1)
	for i, ch := range changes {
		if i == changesMax {
			s.cut = true
			s.add(render.Plain(s.lang.Text("approval.more-files", len(changes)-i)))
			return
		}
		path, whole := inLine(cli.Relative(dir, ch.Path), pathMax)
		s.cut = s.cut || !whole
		s.add(render.Concat(render.Plain(render.ChangeSign(ch.Kind)+" "+outsideSign(a.Links, ch.Path, dir)),
			render.Styled(render.Code, path), render.Plain(extent(s.lang, ch))))
		s.block("diff", render.DiffText(s.lang, cli.Relative(dir, ch.Path), ch.Diff), room)
	}
}

// extent returns how much of a file a change affects.
func extent(p lang.Printer, ch cli.FileChanged) string {
	if ch.Kind == cli.FileReplaced {
		return " · " + p.Text("approval.whole-file")
	}
	return render.DiffCount(ch.Diff)
}

// outsideSign returns a warning sign if a path is outside of the working directory, or is a link that leads outside.
func outsideSign(links []orchestrator.Link, path, dir string) string {
	real := cli.Relative(dir, cli.Absolute(dir, path))
	if slices.ContainsFunc(links, func(l orchestrator.Link) bool { return l.Outside && l.Path == real }) {
		return "⚠️ "
	}
	if filepath.IsAbs(path) && filepath.IsAbs(dir) {
		rel, err := filepath.Rel(dir, path)
		if err == nil && filepath.IsLocal(rel) {
			return ""
		}
		return "⚠️ "
	}
	if path == "" || filepath.IsLocal(path) || dir == "" {
		return ""
	}
	return "⚠️ "
}

// whyShut returns a text if no user may allow the request in the chat, because the chat cannot show the whole request.
// It returns "" otherwise.
func (a view) whyShut() string {
	switch req := a.Request; {
	case req.Missing != "" && req.Tool == cli.ProjectTool:
		return a.lang.Text("approval.project-missing", req.Missing)
	case req.Missing != "":
		return a.lang.Text("approval.part-missing", render.AgentName(a.lang, a.Agent), req.Missing)
	case !req.Allowable():
		return a.lang.Text("approval.all-missing", render.AgentName(a.lang, a.Agent))
	case a.fullTextTooLong():
		return a.lang.Text("approval.too-long")
	}
	return ""
}
