/* What a person writes about a run: a star, a note, tags, and whether it is archived. */
import { post } from '../api.js';
import { freshId, h, labelled } from '../elements.js';
import { t } from '../language.js';
import { dialogue, toast, toastError } from '../overlays.js';

/* Words between blanks and commas, each once. */
export function tagsOf(text) {
    return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

/* `members` are sent as they are; the server answers what they were, which undoing sends again. */
async function note(run, members, text, done) {
    const { before } = await post('run-notes', { name: run.name, ...members });
    const undo = async () => {
        try {
            await post('run-notes', { name: run.name, ...before });
            done();
        } catch (error) {
            toastError(error);
        }
    };
    toast(text, 'info', { label: t('action.undo'), act: undo });
    done();
}

const reported = (act) => (...given) => act(...given).catch(toastError);

export const star = reported((run, done) => note(run, { starred: !run.starred },
    t(run.starred ? 'runs.unstarred' : 'runs.starred', { name: run.name }), done));

export const archive = reported((run, done) => note(run, { archived: !run.archived },
    t(run.archived ? 'runs.unarchived' : 'runs.archived', { name: run.name }), done));

/* `known`: the tags of all runs, to choose from. */
export function editNotes(run, known, done) {
    const list = freshId('tags');
    const text = h('textarea', { class: 'input runs-note', rows: 6, maxlength: 8000, autofocus: true });
    const tags = h('input', { class: 'input', value: run.tags.join(' '), list, autocomplete: 'off',
        spellcheck: 'false' });
    text.value = run.note;
    return dialogue({ title: t('runs.notes_title', { name: run.name }), accept: t('runs.keep'),
        content: h('div', { class: 'runs-confirm' },
            labelled(t('runs.note'), text, { class: 'field is-stacked' }),
            labelled(t('runs.tags_words'), tags, { class: 'field is-stacked' }),
            h('datalist', { id: list }, known.map((tag) => h('option', { value: tag })))),
        act: () => note(run, { note: text.value.trim(), tags: tagsOf(tags.value) },
            t('runs.noted', { name: run.name }), done) });
}

export function knownTags(runs) {
    return [...new Set(runs.flatMap((run) => run.tags))].sort();
}
