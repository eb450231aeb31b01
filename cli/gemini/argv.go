package gemini

import "ductor/cli"

// approvalMode gives the value of --approval-mode for a one-shot run, in which Gemini can ask no user, and says in one
// sentence what of the permission mode cannot be promised. Live, package acp chooses the mode.
func approvalMode(mode cli.PermissionMode) (value, cannot string) {
	switch mode {
	case cli.Bypass:
		return "yolo", ""
	case cli.AcceptEdits:
		return "auto_edit", "one-shot it cannot ask, so commands are not run"
	case cli.Auto:
		return "auto_edit", "it has no mode of its own judgement: files may be changed, and commands are not run"
	case cli.Plan:
		return "plan", ""
	}
	return "default", "one-shot it cannot ask, so nothing is changed and no command is run"
}

// argv is the command line of one turn. The prompt is not in it: it travels on standard input.
func (p *Provider) argv(req cli.Request) ([]string, error) {
	approval, _ := approvalMode(req.Permission)
	args := []string{"--prompt=", "--output-format=stream-json", "--approval-mode=" + approval}
	if req.Model != "" {
		args = append(args, "--model="+string(req.Model))
	}
	if err := p.keepPolicy(req); err != nil {
		return nil, err
	}
	args = append(args, p.liveArgs(req)...)
	if req.Resume != "" {
		args = append(args, "--resume="+string(req.Resume))
	}
	return append(args, req.ExtraArgs...), nil
}
