/* What the token of this page may do: look, steer, or all. The server decides; here what would be refused is not
 * offered. Elements with data-needs="steer" or "admin" are hidden by base.css from those who may less. */
const roles = ['look', 'steer', 'admin'];
let own = 'admin';

export function setRole(role) {
    own = roles.includes(role) ? role : 'look';
    document.body.dataset.role = own;
}

export function may(needed) {
    return roles.indexOf(own) >= roles.indexOf(needed);
}

export function role() {
    return own;
}
