import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { setDiagnostics, type Diagnostic } from '@codemirror/lint'
import { EditorState, RangeSetBuilder, type Extension } from '@codemirror/state'
import { Decoration, drawSelection, EditorView, keymap, placeholder, tooltips, ViewPlugin, type DecorationSet, type ViewUpdate } from '@codemirror/view'
import { useEffect, useRef } from 'preact/hooks'
import { completions } from '../dql/complete'
import { tokenize } from '../dql/tokens'

export interface Mistake {
  offset: number // in bytes of the text as UTF-8
  message: string
  query: string // the text it is about
}

interface Props {
  given: { text: string } // what the page puts into the editor: each object once
  mistake?: Mistake
  onChange: (text: string) => void
  onRun: () => void
}

/**
 * The editor of queries. It lives in a shadow root, where CodeMirror adopts
 * its style sheets: in the document it would add style elements, which the
 * policy of the page forbids.
 */
export function Editor(p: Props) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const latest = useRef(p)
  latest.current = p

  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: 'open' })
    const v = new EditorView({
      root,
      parent: root,
      state: EditorState.create({ doc: latest.current.given.text, selection: { anchor: latest.current.given.text.length }, extensions: extensions(latest) }),
    })
    view.current = v
    if (matchMedia('(min-width: 700px)').matches) v.focus()
    return () => v.destroy()
  }, [])

  useEffect(() => {
    const v = view.current
    if (v && v.state.doc.toString() !== p.given.text) {
      v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: p.given.text } })
    }
  }, [p.given])

  useEffect(() => {
    const v = view.current
    if (v) v.dispatch(setDiagnostics(v.state, diagnostics(p.mistake, v.state.doc.toString())))
  }, [p.mistake])

  return <div class="editor" ref={host} />
}

function extensions(latest: { current: Props }): Extension {
  const run = () => {
    latest.current.onRun()
    return true
  }
  return [
    history(),
    drawSelection(),
    closeBrackets(),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ 'aria-label': 'Query', spellcheck: 'false', autocapitalize: 'off' }),
    placeholder('SELECT … BUCKET … LAST 1h'),
    autocompletion({ override: [completions], activateOnTyping: true, maxRenderedOptions: 200, icons: false }),
    tooltips({ position: 'fixed' }),
    highlighting,
    theme,
    EditorView.updateListener.of((u) => {
      if (u.docChanged) latest.current.onChange(u.state.doc.toString())
    }),
    keymap.of([
      { key: 'Mod-Enter', run },
      { key: 'Shift-Enter', run },
      { key: 'Alt-/', run: startCompletion },
      ...completionKeymap, ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap,
    ]),
  ]
}

/** The place of a mistake, as long as the text is the one it was found in. */
function diagnostics(mistake: Mistake | undefined, text: string): Diagnostic[] {
  if (!mistake || mistake.query !== text) return []
  const from = indexOfByte(text, mistake.offset)
  const token = tokenize(text).find((t) => t.from <= from && from < t.to)
  const to = token?.to ?? Math.min(text.length, from + 1)
  return [{ from: from === to ? Math.max(0, from - 1) : from, to, severity: 'error', message: mistake.message }]
}

/** The index in a text of a byte of its UTF-8. */
export function indexOfByte(text: string, offset: number): number {
  const head = new TextEncoder().encode(text).slice(0, offset)
  return new TextDecoder().decode(head).length
}

const marks: Record<string, Decoration> = Object.fromEntries(
  ['keyword', 'function', 'quoted', 'date', 'number', 'variable', 'operator', 'comment'].map((kind) => [kind, Decoration.mark({ class: `t-${kind}` })]),
)

const highlighting = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet
    constructor(view: EditorView) {
      this.decorations = highlight(view.state.doc.toString())
    }
    update(u: ViewUpdate) {
      if (u.docChanged) this.decorations = highlight(u.state.doc.toString())
    }
  },
  { decorations: (plugin) => plugin.decorations },
)

function highlight(text: string): DecorationSet {
  const set = new RangeSetBuilder<Decoration>()
  for (const t of tokenize(text)) {
    const mark = marks[t.kind]
    if (mark) set.add(t.from, t.to, mark)
  }
  return set.finish()
}

const theme = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'var(--field)', fontSize: '14px', borderRadius: '8px', border: '1px solid var(--edge)' },
  '&.cm-focused': { outline: 'none', borderColor: 'var(--accent)', boxShadow: '0 0 0 3px var(--halo)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', maxHeight: '40vh', overflow: 'auto' },
  '.cm-content': { padding: '10px 4px', minHeight: '44px', caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { background: 'var(--halo)' },
  '.cm-placeholder': { color: 'var(--ink-3)' },
  '.t-keyword': { color: 'var(--t-keyword)', fontWeight: '600' },
  '.t-function': { color: 'var(--t-function)' },
  '.t-quoted': { color: 'var(--t-string)' },
  '.t-date': { color: 'var(--t-string)' },
  '.t-number': { color: 'var(--t-number)' },
  '.t-variable': { color: 'var(--t-number)' },
  '.t-operator': { color: 'var(--ink-2)' },
  '.t-comment': { color: 'var(--ink-3)', fontStyle: 'italic' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad) 1.5px', textUnderlineOffset: '4px' },
  '.cm-lintPoint-error:after': { borderBottomColor: 'var(--bad)' },
  '.cm-tooltip': { background: 'var(--card)', color: 'var(--ink)', border: '1px solid var(--edge)', borderRadius: '8px', boxShadow: 'var(--shadow)', overflow: 'hidden', zIndex: '30' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', fontSize: '13px', maxHeight: '18em' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px', display: 'flex', gap: '16px', justifyContent: 'space-between' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { background: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-completionDetail': { color: 'inherit', opacity: '0.7', fontStyle: 'normal', marginLeft: '1em' },
  '.cm-completionInfo': { maxWidth: '26em', padding: '8px 10px', fontFamily: 'var(--sans)', fontSize: '13px' },
  '.cm-diagnostic': { padding: '6px 10px', borderLeft: '3px solid var(--bad)', fontFamily: 'var(--sans)', fontSize: '13px' },
})
