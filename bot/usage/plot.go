package usage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/picture"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// plot is the content of a picture of the usage.
type plot struct {
	title, note string // the note is the line below the title; it shows the total usage
	bars        []bar
	days        bool // the bars are consecutive days, and are drawn next to each other
}

// bar is a bar of a plot. The share is the bar's length relative to the longest bar.
type bar struct {
	name, counts string
	share        float64
}

// Sizes of a plot, in cells.
const (
	plotHead = 3  // rows above the bars
	dayRows  = 12 // height of the longest bar in a plot of days
	barGap   = 0.15
	barsMost = 20
	barRows  = 4 // rows per horizontal bar: name, bar, counts and an empty row
)

// draw returns a picture of the plot that fills the width of a phone.
func (p plot) draw(theme picture.Theme) ([]byte, error) {
	rows := plotHead + barRows*len(p.bars)
	if p.days {
		rows = plotHead + dayRows + 2
	}
	c, err := picture.New(theme, picture.PhoneColumns, rows)
	if err != nil {
		return nil, err
	}
	c.Text(0, 0, picture.Ink, picture.Bold, render.ShortenPlain(p.title, picture.PhoneColumns))
	c.Text(0, 1, picture.Muted, picture.Regular, render.ShortenPlain(p.note, picture.PhoneColumns))
	if p.days {
		p.drawDays(c)
	} else {
		p.drawBars(c)
	}
	return c.PNG()
}

// drawDays draws vertical bars. It labels the first, the last and the longest bar.
func (p plot) drawDays(c *picture.Canvas) {
	bottom := float64(plotHead + dayRows)
	each := float64(picture.PhoneColumns) / float64(len(p.bars))
	highest := 0
	for i, b := range p.bars {
		gap := barGap * each
		high := b.share * (dayRows - 1)
		c.Fill(picture.Box{
			Column: float64(i)*each + gap, Row: bottom - high, Columns: each - 2*gap, Rows: high,
		}, picture.Mark1)
		if b.share > p.bars[highest].share {
			highest = i
		}
	}
	c.Rule(bottom, picture.Grid)
	top := render.ShortenPlain(p.bars[highest].name+": "+p.bars[highest].counts, picture.PhoneColumns)
	at := int((float64(highest)+0.5)*each) - picture.Width(top)/2
	c.Text(max(min(at, picture.PhoneColumns-picture.Width(top)), 0), plotHead, picture.Muted, picture.Regular, top)
	first, last := p.bars[0].name, p.bars[len(p.bars)-1].name
	c.Text(0, plotHead+dayRows, picture.Muted, picture.Regular, first)
	if len(p.bars) > 1 {
		c.Text(picture.PhoneColumns-picture.Width(last), plotHead+dayRows, picture.Muted, picture.Regular, last)
	}
}

// drawBars draws horizontal bars. The name of a bar is above it, and its counts are below.
func (p plot) drawBars(c *picture.Canvas) {
	for i, b := range p.bars {
		row := plotHead + barRows*i
		c.Text(0, row, picture.Ink, picture.Bold, render.ShortenPlain(b.name, picture.PhoneColumns))
		long := max(b.share*picture.PhoneColumns, 0.2)
		c.Fill(picture.Box{Row: float64(row) + 1.1, Columns: picture.PhoneColumns, Rows: 0.8}, picture.Header)
		c.Fill(picture.Box{Row: float64(row) + 1.1, Columns: long, Rows: 0.8}, picture.Mark1+picture.Color(i%6))
		c.Text(0, row+2, picture.Muted, picture.Regular, b.counts)
	}
}

// plotButtons returns the buttons that send a table as a picture, in a light and in a dark theme.
func plotButtons(say lang.Printer, p period, group orchestrator.UsageGroup) []tgapi.Button {
	plot := func(key lang.Key, theme string) tgapi.Button {
		return tgapi.NewButton(say.Text(key), PlotAction, theme+":"+string(p)+":"+string(group))
	}
	return []tgapi.Button{plot("usage.plot-light", "l"), plot("usage.plot-dark", "d")}
}

// Plot handles a button with the action PlotAction. It sends a picture. messageID identifies the message with the
// button, and data is the button's data without the action.
func (s *Screen) Plot(ctx context.Context, by orchestrator.Press, messageID int, data string) (tgapi.Answer, error) {
	say := s.Lang.Of(by.Conversation.Chat)
	name, what, _ := strings.Cut(data, ":")
	theme, known := picture.ThemeOf(name)
	p, group, ok := chosen(what)
	if !known || !ok || s.Spool == nil || len(by.Updates) == 0 {
		return tgapi.Stale(say), nil
	}
	_, rows, err := s.rows(ctx, by, p, group)
	if err != nil {
		return tgapi.Answer{}, err
	}
	if len(rows) == 0 {
		return tgapi.Answer{Text: say.Text("usage.plot-nothing")}, nil
	}
	shows := s.plotOf(say, p, group, rows)
	if !picture.Drawable(shows.title + shows.note) { // the font lacks some characters of the language, so use English
		shows = s.plotOf(lang.Printer{}, p, group, rows)
	}
	drawn, err := shows.draw(theme)
	if err != nil {
		return tgapi.Answer{}, fmt.Errorf("draw usage: %w", err)
	}
	spooled, err := s.Spool.Put(drawn)
	if err != nil {
		return tgapi.Answer{}, fmt.Errorf("keep a picture of usage: %w", err)
	}
	content := message.Content{
		ReplyTo: messageID, Silent: true, Files: []message.File{{Name: "usage.png", Spooled: spooled, Picture: true}},
	}
	return tgapi.Answer{
		Messages: []orchestrator.Message{
			message.ComposeFiles(by.Conversation, fmt.Sprint("usage/", by.Updates[0]), 0, content),
		},
	}, nil
}

func (s *Screen) plotOf(say lang.Printer, p period, group orchestrator.UsageGroup, rows []orchestrator.UsageRow) plot {
	out := plot{
		title: say.Text("usage.title", say.Text(periodNames[p]), say.Text(groupNames[group])),
		note:  say.Text("usage.total", s.counts(say, sumOf(rows))),
		days:  group == orchestrator.UsageByDay,
	}
	share := shareOf(rows)
	if out.days {
		rows = everyDay(rows, s.since(p), s.Now())
	} else {
		rows = rows[:min(len(rows), barsMost)]
	}
	for _, r := range rows {
		out.bars = append(out.bars, bar{s.name(say, r.Name, group), s.counts(say, r), share(r)})
	}
	return out
}

// everyDay returns one row for each day of a period, including the days without usage.
func everyDay(rows []orchestrator.UsageRow, since, now time.Time) (out []orchestrator.UsageRow) {
	used := make(map[string]orchestrator.UsageRow, len(rows))
	for _, r := range rows {
		used[r.Name] = r
	}
	for day := since; !day.After(now); day = day.AddDate(0, 0, 1) {
		r := used[day.Format(time.DateOnly)]
		r.Name = day.Format(time.DateOnly)
		out = append(out, r)
	}
	return out
}
