package archtest

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Dialects describe requests of agents in the words of package cli. The packages that decide about them or show them
// know no agent, so that another agent needs no change there, and no decision depends on the form of an agent's JSON.
var (
	deciding     = []string{"orchestrator/approval", "orchestrator/steps", "bot/approval"}
	agentName    = regexp.MustCompile(`(?i)claude|codex|copilot|gemini|qwen|opencode`)
	decodesInput = regexp.MustCompile(`\bjson\.(Unmarshal|NewDecoder|Valid)\b|` +
		`\bcli\.(Leaves|TextsOf|Names|EffectOf|HasOnlyFields|QuestionsIn)\(`)
)

func TestWhoDecidesKnowsNoAgent(t *testing.T) {
	for _, f := range parsedTree(t) {
		if slices.Contains(deciding, f.pkg) && f.isProduction() {
			for _, wrong := range agentKnowledge(f) {
				t.Errorf("%s: %s", f.path, wrong)
			}
		}
	}
	for code, want := range map[string]int{
		"// As Copilot does.\nfunc f() {}":                                                                         1,
		"func f(p cli.ApprovalAsked) { json.Unmarshal(p.Input, nil) }":                                             1,
		"func f(p cli.ApprovalAsked) bool { return p.Tool == \"Bash\" }":                                           1,
		"func f(p cli.ApprovalAsked) bool { return has([]string{\"Bash\"}, p.Tool) }":                              1,
		"func f(p cli.ApprovalAsked) { switch p.Tool { case \"Bash\": } }":                                         1,
		"func f(p cli.ApprovalAsked) bool { return p.Tool == cli.PlanTool || p.Tool == \"\" || len(p.Input) > 0 }": 0,
	} {
		got := agentKnowledge(parse(t, "orchestrator/approval/x.go", "package approval\n\n"+code))
		if len(got) != want {
			t.Errorf("%q, want %d of\n%s", got, want, code)
		}
	}
}

// agentKnowledge lists the places where a file names an agent, decodes an agent's JSON, or compares an agent's name of
// a tool.
func agentKnowledge(f parsedFile) (wrong []string) {
	for line := range strings.Lines(f.text) {
		own := strings.Contains(line, "json.Unmarshal(data, &d)") // the screen's own draft
		if agentName.MatchString(line) || decodesInput.MatchString(line) && !own {
			wrong = append(wrong, strings.TrimSpace(line))
		}
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if isTool(n.X) && isText(n.Y) || isTool(n.Y) && isText(n.X) {
				wrong = append(wrong, "it compares a tool with a name")
			}
		case *ast.SwitchStmt:
			if isTool(n.Tag) {
				wrong = append(wrong, "it selects by the name of a tool")
			}
		case *ast.CallExpr:
			list := func(e ast.Expr) bool { _, is := e.(*ast.CompositeLit); return is }
			if slices.ContainsFunc(n.Args, isTool) && slices.ContainsFunc(n.Args, list) {
				wrong = append(wrong, "it looks for a tool in a list")
			}
		}
		return true
	})
	return wrong
}

func isTool(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Tool"
}

func isText(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Value != `""`
}
