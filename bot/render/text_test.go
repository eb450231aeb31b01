package render

import "testing"

func TestBuilders(t *testing.T) {
	for name, c := range map[string]struct {
		got  Text
		want string
	}{
		"plain":                 {Plain("a\tb\x00c\xff\r"), "a    b�c� "},
		"styled":                {Styled(Bold, " a b "), " ‹bold›a b‹/bold› "},
		"styled blank":          {Styled(Bold, " \n"), " \n"},
		"code keeps its indent": {Styled(Code, " a "), "‹code› a‹/code› "},
		"code block":            {CodeBlock("go", "x"), "‹pre go›x‹/pre›"},
		"wrapped":               {Wrap(Bold, Markdown("a `b` *c*")), "‹bold›a‹/bold› ‹code›b‹/code› ‹bold›‹italic›c‹/italic›‹/bold›"},
		"wrapped in a quote":    {Wrap(Expandable, Markdown("> a\n\n`b`")), "‹expandable_blockquote›a\n\n‹code›b‹/code›‹/expandable_blockquote›"},
		"wrapped in code":       {Wrap(Pre, Markdown("**a**")), "‹pre›a‹/pre›"},
		"a quote in strikes":    {Wrap(Strikethrough, Markdown("a\n> b")), "‹strikethrough›a‹/strikethrough›\n‹blockquote›‹strikethrough›b‹/strikethrough›‹/blockquote›"},
		"joined":                {Concat(Plain("😀 "), Styled(Bold, "a"), Text{}, Styled(Italic, "b")), "😀 ‹bold›a‹/bold›‹italic›b‹/italic›"},
		"sliced":                {Slice(Markdown("a **bc *de* f**"), 3, 6), "‹bold›c ‹italic›d‹/italic›‹/bold›"},
		"sliced in a pair":      {Slice(Plain("a😀b"), 2, 4), "b"},
		"sliced outside":        {Slice(Plain("abc"), -5, 99), "abc"},
		"shortened":             {Shorten(Markdown("**one two** three"), 9), "‹bold›one two‹/bold›…"},
		"short enough":          {Shorten(Plain("abc"), 3), "abc"},
		"shortened to a family": {Shorten(Plain("a👩‍👩‍👧b"), 6), "a…"},
		"shortened to nothing":  {Shorten(Plain("abc"), 0), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := notation(c.got); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if err := check(c.got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLenCountsUnits(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "中": 1, "😀": 2, "👩‍👩‍👧": 8, "\xff": 1} {
		if got := Len(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	if !Fits(Plain("😀😀"), 4) || Fits(Plain("😀😀"), 3) {
		t.Error("Fits does not count as Len does")
	}
}
