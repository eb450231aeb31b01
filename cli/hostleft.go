package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"ductor/internal/supervisor"
)

// The labels of a run.
const (
	labelAgent        = "agent"
	labelMode         = "mode"
	labelConversation = "conversation"
	labelSetting      = "setting"
	labelMarks        = "marks"
)

// labelsOf writes a purpose and marks as labels of a run.
func labelsOf(p Purpose, marks []Mark) (map[string]string, error) {
	raw, err := json.Marshal(marks)
	if err != nil {
		return nil, fmt.Errorf("encode marks: %w", err)
	}
	return map[string]string{
		labelAgent: string(p.Agent), labelMode: string(p.Mode), labelConversation: string(p.Conversation),
		labelSetting: p.Setting, labelMarks: string(raw),
	}, nil
}

// PurposeOf reads the labels of a run that a Host started.
func PurposeOf(labels map[string]string) (Purpose, []Mark, error) {
	p := Purpose{
		Agent: Agent(labels[labelAgent]), Mode: Mode(labels[labelMode]),
		Conversation: Conversation(labels[labelConversation]), Setting: labels[labelSetting],
	}
	var marks []Mark
	if raw := labels[labelMarks]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &marks); err != nil {
			return p, nil, fmt.Errorf("read marks of a run: %w", err)
		}
	}
	return p, marks, nil
}

// Left lists the runs of the previous process of ductor. Its probes are ended.
func (h *Host) Left(ctx context.Context) ([]LeftRun, error) {
	infos, err := h.root.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for runs that were left: %w", err)
	}
	var left []LeftRun
	for _, info := range infos {
		if h.isMine(RunID(info.ID)) {
			continue
		}
		run := leftOf(info)
		if run.Mode == "" && run.Problem == "" {
			err := h.Discard(ctx, run.Run)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may have ended in between
				h.log.Warn("end a probe that was left", "run", run.Run, "err", err)
			}
			continue
		}
		left = append(left, run)
	}
	return left, nil
}

func (h *Host) isMine(id RunID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[id] != nil || h.starting[id]
}

func leftOf(info supervisor.Info) LeftRun {
	purpose, marks, err := PurposeOf(info.Labels)
	run := LeftRun{
		Run: RunID(info.ID), Purpose: purpose, Marks: marks, PID: info.PID, OutputEnd: info.OutputEnd,
		InputEnd: info.InputEnd, InputClosed: info.InputClosed, Alive: info.Alive, Problem: info.Problem,
	}
	if err != nil && run.Problem == "" {
		run.Problem = err.Error()
	}
	return run
}

// Attach takes over a run.
func (h *Host) Attach(ctx context.Context, id RunID, offset int64) (Process, error) {
	run, err := h.root.Attach(ctx, string(id), offset)
	if err != nil {
		return nil, err
	}
	purpose, marks, err := PurposeOf(run.Info().Labels)
	if err != nil {
		run.Detach()
		return nil, err
	}
	times, err := run.Times(ctx)
	if err != nil { // its supervisor is gone: then it is unknown
		times = supervisor.Times{}
	}
	return h.hold(run, purpose, slices.Clone(marks), times), nil
}

// Discard ends a run and forgets its output.
func (h *Host) Discard(ctx context.Context, id RunID) error {
	if err := h.root.Kill(ctx, string(id)); err != nil {
		return err
	}
	return h.root.Collect(ctx, string(id))
}
